package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/outbox"
	"troupe/actors/repository"
	"troupe/actors/repository/bucket"
	"troupe/actors/repository/disk"
	"troupe/cmd/internal/build"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
	"troupe/gateway"
	"troupe/gateway/certificate"
	"troupe/gateway/provider"
	"troupe/persistence"
	"troupe/statemachine/document"
)

// Files is where the files of the repository are.
type Files interface {
	repository.Source
	io.Closer
}

// OpenFiles opens them. It reads nothing.
func (c *Config) OpenFiles(log zerolog.Logger) (Files, error) {
	if b, err := c.NewBucket(log); b != nil || err != nil {
		return b, err
	}
	return disk.Open(disk.Options{Dir: filepath.Join(c.Home, home.RepositoryFolder), Log: log})
}

// NewBucket makes the client of the object store with the files; nil when they are in the home.
func (c *Config) NewBucket(log zerolog.Logger) (*bucket.Bucket, error) {
	if c.bucket.Bucket == "" {
		return nil, nil
	}
	o := c.bucket
	o.Log = log
	b, err := bucket.Open(o)
	if err != nil {
		return nil, fmt.Errorf("the settings of the repository: %w", err)
	}
	return b, nil
}

// OpenCertificates reads the certificate of the main listener; nil when it speaks no TLS. A file is named from the home.
func (c *Config) OpenCertificates(log zerolog.Logger) (*certificate.Files, error) {
	if c.TLS.Cert == "" {
		return nil, nil
	}
	if c.TLS.Key == "" {
		return nil, errors.New("tls.cert is set, but tls.key is not")
	}
	o := certificate.Options{Cert: c.inHome(c.TLS.Cert), Key: c.inHome(c.TLS.Key), ClientCA: c.inHome(c.TLS.ClientCA), Log: log}
	return certificate.Open(o)
}

// inHome is where a file of a setting is.
func (c *Config) inHome(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Home, path)
}

// NewGateway makes the server of the main listener. It opens nothing.
func (c *Config) NewGateway(certificates *certificate.Files, log zerolog.Logger) (*gateway.Server, error) {
	o := c.Gateway
	if certificates != nil { // NB: a nil pointer in the interface would not be nil
		o.TLS = certificates
	}
	o.Build, o.Log = build.This().ForGateway(), log
	return gateway.New(o)
}

// NewProvider makes the client of the identity provider; nil when there is none. key is provider.Options.Key.
func (c *Config) NewProvider(key func() ([]byte, error), log zerolog.Logger) (*provider.Client, error) {
	if c.Provider.Issuer == "" {
		return nil, nil
	}
	o := c.Provider
	o.Key, o.Log = key, log
	p, err := provider.New(o)
	if err != nil {
		return nil, fmt.Errorf("the settings of oidc: %w", err)
	}
	return p, nil
}

// StartIdentities starts the service of identities.
func (c *Config) StartIdentities(store *persistence.Store, directory *identity.Directory, log zerolog.Logger) (*identity.Service, error) {
	o := c.Identity
	o.Store, o.Directory, o.Log = store, directory, log
	return identity.Start(o)
}

// ExplainAddress adds to an address that something else has, or that is another machine's, which setting chooses
// another.
func ExplainAddress(err error, setting string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; choose another address with --%s, or with %[2]s: in troupe.yaml", err, setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: this machine does not have it; choose another address with --%s, or with %[2]s: in troupe.yaml", err, setting)
	}
	return err
}

// CheckParts finds what only the parts that have settings can refuse.
func (c *Config) CheckParts() (faults []error) {
	certificates, tlsErr := c.OpenCertificates(zerolog.Nop())
	if certificates != nil {
		_ = certificates.Stop(context.Background()) // it has no error
	}
	_, gatewayErr := c.NewGateway(nil, zerolog.Nop())
	_, providerErr := c.NewProvider(nil, zerolog.Nop())
	_, bucketErr := c.NewBucket(zerolog.Nop())
	_, senderErr := c.NewSender(nil)
	_, exportsErr := c.NewExports(zerolog.Nop())
	return []error{tlsErr, gatewayErr, providerErr, bucketErr, senderErr, exportsErr, c.Store.EnsureDefaults().Validate()}
}

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

func (c *Config) webhookSecrets() (map[[2]string][]byte, error) {
	secrets := map[[2]string][]byte{}
	var faults []error
	for workflow, hooks := range c.endpoints {
		for name, e := range hooks {
			text, err := c.readSecret(e.Secret, e.SecretFile)
			if err == nil && text != "" {
				secrets[[2]string{workflow, name}], err = outbox.ParseSecret(text)
			}
			if err != nil {
				faults = append(faults, fmt.Errorf("webhooks.endpoints, %s.%s: %w", workflow, name, err))
			}
		}
	}
	return secrets, errors.Join(faults...)
}

// WarnOfSending warns of what would become dead letters at once, and of settings of webhooks and exports that no definition has.
func (c *Config) WarnOfSending(set []catalog.Source) (warnings document.Faults) {
	for i := range set {
		s := &set[i]
		warn := func(line int, suggestion, reason string) {
			warnings = append(warnings, document.Fault{File: s.File, Line: line, Reason: reason, Suggestion: suggestion})
		}
		if line := s.Parsed.MailLine; line > 0 && c.mail.Host == "" {
			warn(line, "set mail.host in troupe.yaml", "it sends mail, but no mail server is set: its mails become dead letters")
		}
		settings, names := c.endpoints[string(s.Parsed.ID)], []string{}
		for _, hook := range s.Parsed.Webhooks() {
			if names = append(names, hook.Name); cmp.Or(settings[hook.Name].URL, hook.URL) == "" {
				warn(hook.Line, "give it one here, or in webhooks.endpoints of troupe.yaml", "webhook "+hook.Name+" has no url: what is sent to it becomes a dead letter")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			if !slices.Contains(names, name) {
				warn(0, cli.Suggestion(name, names), "webhooks.endpoints of troupe.yaml has a webhook "+name+", but the definition has no webhook of that name")
			}
		}
	}
	var known []string
	for i := range set {
		known = append(known, string(set[i].Parsed.ID))
	}
	return slices.Concat(warnings, c.warnOfEndpoints(known), c.warnOfExports(known))
}

// Workflows may be published later.
func (c *Config) warnOfEndpoints(known []string) (warnings document.Faults) {
	for _, workflow := range slices.Sorted(maps.Keys(c.endpoints)) {
		if near := document.Closest(workflow, known); near != "" && !slices.Contains(known, workflow) {
			warnings = append(warnings, document.Fault{File: homedir.SettingsFile, Reason: "webhooks.endpoints has the workflow " + workflow + ", which is not defined", Suggestion: "did you mean " + near + "?"})
		}
	}
	return warnings
}

// Logger writes to standard error.
func (c *Config) Logger() zerolog.Logger {
	level, _ := zerolog.ParseLevel(c.LogLevel) // isLogLevel has looked at it
	return zerolog.New(c.logWriter()).Level(level).With().Timestamp().Logger()
}

func (c *Config) logsText() bool {
	return c.logFormat == "text" || c.logFormat == "auto" && cli.IsTerminal(os.Stderr)
}

func (c *Config) logWriter() io.Writer {
	if c.quiet {
		return plainLines(os.Stderr)
	}
	if c.logsText() {
		return zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly}
	}
	return os.Stderr
}

// plainLines shows what is logged as commands show their own warnings, whatever the form of the server's log is.
func plainLines(out io.Writer) io.Writer {
	level := func(of any) string { return map[any]string{"warn": "warning:", "error": "error:"}[of] }
	return zerolog.ConsoleWriter{Out: out, NoColor: true, PartsExclude: []string{zerolog.TimestampFieldName}, FormatLevel: level}
}

// ServerLogger is the logger of the server, and what ends its start: a person at a terminal
// reads one line then, and until then what is amiss alone.
func (c *Config) ServerLogger() (log zerolog.Logger, started func()) {
	log = c.Logger()
	if c.IsChosen("log-level") || !c.logsText() {
		return log, func() {}
	}
	w := &quietStart{to: c.logWriter()}
	return log.Output(w), func() { w.started.Store(true) }
}

// quietStart leaves out what is less than a warning until the server has started.
type quietStart struct {
	to      io.Writer
	started atomic.Bool
}

func (w *quietStart) Write(line []byte) (int, error) { return w.to.Write(line) }

func (w *quietStart) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	if level < zerolog.WarnLevel && !w.started.Load() {
		return len(line), nil
	}
	return w.to.Write(line)
}
