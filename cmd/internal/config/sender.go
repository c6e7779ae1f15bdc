package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/identity"
	"troupe/actors/outbox"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
	"troupe/statemachine/document"
)

// NewSender makes what sends for instances. It connects nowhere. directory has the addresses of people.
func (c *Config) NewSender(directory func() *identity.Directory) (outbox.Senders, error) {
	secrets, err := c.webhookSecrets()
	w := c.webhooks
	w.Source, w.Clock = c.Gateway.BasePath+"/workflow/api/v1", time.Now
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

// A file is named from the home.
func (c *Config) webhookSecrets() (map[[2]string][]byte, error) {
	secrets := map[[2]string][]byte{}
	var faults []error
	for workflow, hooks := range c.endpoints {
		for name, e := range hooks {
			text := e.Secret
			if e.SecretFile != "" {
				path := e.SecretFile
				if !filepath.IsAbs(path) {
					path = filepath.Join(c.Home, path)
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

// WarnOfSending warns of what would become dead letters at once, and of settings of webhooks that no definition has.
func (c *Config) WarnOfSending(set []catalog.Source) (warnings document.Faults) {
	for i := range set {
		s := &set[i]
		warn := func(line int, suggestion, reason string) {
			warnings = append(warnings, document.Fault{File: s.File, Line: line, Reason: reason, Suggestion: suggestion})
		}
		if line := s.Parsed.MailLine; line > 0 && c.mail.Host == "" {
			warn(line, "set mail.host in troupe.yaml", "it sends mails, and no server takes them: they become dead letters")
		}
		settings, names := c.endpoints[string(s.Parsed.ID)], []string{}
		for _, hook := range s.Parsed.Webhooks() {
			if names = append(names, hook.Name); cmp.Or(settings[hook.Name].URL, hook.URL) == "" {
				warn(hook.Line, "give it one here, or in webhooks.endpoints of troupe.yaml", "webhook "+hook.Name+" has no url: what is sent to it becomes a dead letter")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			if !slices.Contains(names, name) {
				warn(0, cli.Suggestion(name, names), "webhooks.endpoints of troupe.yaml has a webhook "+name+", and the definition has none of that name")
			}
		}
	}
	return append(warnings, c.warnOfEndpoints(set)...)
}

// Others may be published later.
func (c *Config) warnOfEndpoints(set []catalog.Source) (warnings document.Faults) {
	var known []string
	for i := range set {
		known = append(known, string(set[i].Parsed.ID))
	}
	for _, workflow := range slices.Sorted(maps.Keys(c.endpoints)) {
		if near := document.Closest(workflow, known); near != "" && !slices.Contains(known, workflow) {
			warnings = append(warnings, document.Fault{File: homedir.SettingsFile, Reason: "webhooks.endpoints has the workflow " + workflow + ", which nobody defines", Suggestion: "did you mean " + near + "?"})
		}
	}
	return warnings
}
