package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/identity"
	"troupe/actors/outbox"
	"troupe/statemachine/document"
)

// newSender makes what sends for instances. It connects nowhere. directory has the addresses of people.
func (c *config) newSender(directory func() *identity.Directory) (outbox.Senders, error) {
	secrets, err := c.webhookSecrets()
	w := c.webhooks
	w.Source, w.Clock = c.gateway.BasePath+"/workflow/api/v1", time.Now
	w.Endpoint = func(workflow, name string) outbox.Endpoint {
		e := c.endpoints[workflow][name]
		return outbox.Endpoint{URL: e.URL, Headers: e.Headers, Secret: secrets[[2]string{workflow, name}]}
	}
	s := outbox.Senders{Webhooks: outbox.NewWebhooks(w)}
	if c.mail.Host != "" {
		m := c.mail
		m.ImplicitTLS, m.Clock = c.mailTLS == "implicit", time.Now
		m.Addresses = func(addressee string) []string { return directory().Addresses(addressee) }
		var mailErr error
		s.Mails, mailErr = outbox.NewMails(m)
		err = errors.Join(err, mailErr)
	}
	return s, err
}

// webhookSecrets reads the secrets of webhooks.endpoints. A file is named from the home.
func (c *config) webhookSecrets() (map[[2]string][]byte, error) {
	secrets := map[[2]string][]byte{}
	var faults []error
	for workflow, hooks := range c.endpoints {
		for name, e := range hooks {
			text := e.Secret
			if e.SecretFile != "" {
				path := e.SecretFile
				if !filepath.IsAbs(path) {
					path = filepath.Join(c.home, path)
				}
				read, err := os.ReadFile(path)
				if err != nil {
					faults = append(faults, fmt.Errorf("webhooks.endpoints, %s.%s: %w", workflow, name, err))
					continue
				}
				text = string(read)
			}
			if text == "" {
				continue
			}
			secret, err := outbox.ParseSecret(text)
			if err != nil {
				faults = append(faults, fmt.Errorf("webhooks.endpoints, %s.%s: %w", workflow, name, err))
			}
			secrets[[2]string{workflow, name}] = secret
		}
	}
	return secrets, errors.Join(faults...)
}

// warnOfMails warns of definitions that send mails when nothing takes them.
func (c *config) warnOfMails(set []catalog.Source) (warnings document.Faults) {
	if c.mail.Host != "" {
		return nil
	}
	for i := range set {
		if line := set[i].Parsed.MailLine(); line > 0 {
			warnings = append(warnings, document.Fault{
				File: set[i].File, Line: line, Reason: "it sends mails, and no server takes them: they become dead letters", Suggestion: "set mail.host in troupe.yaml",
			})
		}
	}
	return warnings
}
