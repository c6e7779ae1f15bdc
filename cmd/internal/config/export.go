package config

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"troupe/actors/export"
	"troupe/actors/export/file"
	"troupe/actors/export/kafka"
	"troupe/actors/export/nats"
	"troupe/actors/export/web"
	"troupe/actors/outbox"
	"troupe/actors/repository/bucket"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

const exportsType = "exports"

type exportEntry struct {
	Name       string   `json:"name"`
	To         string   `json:"to"`
	Workflows  []string `json:"workflows,omitempty"`
	Format     string   `json:"format,omitempty"`
	User       string   `json:"user,omitempty"`
	Secret     string   `json:"secret,omitempty"`
	SecretFile string   `json:"secretFile,omitempty"`
	CA         string   `json:"ca,omitempty"`
}

// options are those of the setting: paths are in the home.
func (e *exportEntry) options(c *Config) (o ExportOptions, err error) {
	o = ExportOptions{To: e.To, Format: e.Format, User: e.User, Allow: c.webhooks.Allow}
	if !strings.Contains(o.To, "://") {
		o.To = c.inHome(o.To)
	}
	if e.CA != "" {
		o.CA = c.inHome(e.CA)
	}
	o.Secret, err = c.readSecret(e.Secret, e.SecretFile)
	return o, err
}

func exports(to *[]exportEntry) pflag.Value {
	return cli.ValueOf(to, exportsType, parseExports, showExports)
}

func parseExports(s string) ([]exportEntry, error) {
	n, err := document.Parse(exportsType, []byte(s))
	if err != nil {
		return nil, errors.New("must be a list of exports, each with name and to, such as [{name: lake, to: /srv/lake}]")
	}
	if n.Kind == document.Null {
		return nil, nil
	}
	faults := &document.Collector{File: exportsType}
	list := readExports(faults, n)
	for _, f := range faults.Faults() {
		f.File, f.Line = "", 0 // it is one line
		return nil, errors.New(strings.TrimPrefix(f.Error(), ": "))
	}
	return list, nil
}

func readExports(faults *document.Collector, n *document.Node) (list []exportEntry) {
	if n.Kind != document.Sequence {
		faults.Add(n, "exports: must be a list, each with name and to")
		return nil
	}
	for _, item := range n.Items {
		e := readExport(faults, item)
		if slices.ContainsFunc(list, func(other exportEntry) bool { return other.Name == e.Name }) {
			faults.Add(item, "exports: two have the name %q; each has its own", e.Name)
		}
		list = append(list, e)
	}
	return list
}

func readExport(faults *document.Collector, n *document.Node) (e exportEntry) {
	fieldsOf(faults, n)
	faults.Known(n, "name", "to", "workflows", "format", "user", "secret", "secretFile", "ca")
	for key, to := range map[string]*string{
		"name": &e.Name, "to": &e.To, "format": &e.Format, "user": &e.User, "secret": &e.Secret, "secretFile": &e.SecretFile, "ca": &e.CA,
	} {
		if at := n.Field(key); at != nil {
			*to = faults.Text(at)
		}
	}
	if at := n.Field("workflows"); at != nil {
		e.Workflows = faults.Texts(at)
	}
	switch wrong := slices.IndexFunc(e.Workflows, func(w string) bool { return !statemachine.IsIdentifier(w) }); {
	case !statemachine.IsIdentifier(e.Name):
		faults.Add(n, "exports: each needs a name, such as lake")
	case wrong >= 0:
		faults.Add(n, "exports, %s: %q is not the id of a workflow", e.Name, e.Workflows[wrong])
	case e.Secret != "" && e.SecretFile != "":
		faults.Add(n, "exports, %s: secret and secretFile are both set", e.Name)
	default:
		if err := checkExport(&ExportOptions{To: e.To, Format: e.Format, User: e.User, Secret: e.Secret + e.SecretFile, CA: e.CA}); err != nil {
			faults.Add(n, "exports, %s: %v", e.Name, err)
		}
	}
	return e
}

// Secrets are not shown.
func showExports(list []exportEntry) string {
	if len(list) == 0 {
		return ""
	}
	shown := slices.Clone(list)
	for i := range shown {
		e := &shown[i]
		if u, err := url.Parse(e.To); err == nil && (u.User != nil || u.RawQuery != "") {
			u.User, u.RawQuery = nil, ""
			e.To = u.String() + " " + notShown
		}
		if e.Secret != "" {
			e.Secret = notShown
		}
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err.Error() // strings always can be written
	}
	return string(text)
}

// ExportForms says where an export can go.
const ExportForms = "a folder, s3://BUCKET/PREFIX, https://HOST/PATH, kafka://HOST:PORT/TOPIC, or nats://HOST:PORT/SUBJECT"

// ExportFormats are those of files.
const ExportFormats = "jsonl or parquet"

// checkExport says what is wrong with a target, without its secrets.
func checkExport(o *ExportOptions) error {
	scheme, _, isURL := strings.Cut(o.To, "://")
	isFiles := isFiles(o.To)
	isEndpoint := isURL && (scheme == "https" || scheme == "http")
	isSecret := isURL && (scheme == kafka.SchemeTLS || scheme == nats.SchemeTLS)
	isBroker := isSecret || isURL && (scheme == kafka.Scheme || scheme == nats.Scheme)
	switch {
	case o.To == "":
		return errors.New("it has no target: " + ExportForms)
	case !isEndpoint && !isBroker && !isFiles:
		return fmt.Errorf("%s is not known; it is %s", cmp.Or(urlScheme.FindString(o.To), scheme+"://"), ExportForms)
	case o.Format != "" && o.Format != string(file.JSONL) && o.Format != string(file.Parquet):
		return fmt.Errorf("format %q: it is "+ExportFormats, o.Format)
	case o.Format == string(file.Parquet) && !isFiles:
		return errors.New("format parquet: only a folder and s3:// have files")
	case o.Secret != "" && isFiles:
		return errors.New("secret: only requests to https:// are signed, and only Kafka and NATS have a user")
	case o.User != "" && !isBroker:
		return errors.New("user: only Kafka and NATS have one")
	case isBroker && (o.User == "") != (o.Secret == ""):
		return errors.New("user and secret, its password: one of them is missing")
	case o.CA != "" && !isSecret:
		return fmt.Errorf("ca: only %s:// and %s:// show certificates", kafka.SchemeTLS, nats.SchemeTLS)
	}
	return nil
}

// ExportOptions say how an export goes to its target. To is required.
type ExportOptions struct {
	To, Format string
	User       string         // at Kafka and NATS
	Secret     string         // signs requests to https://, or is the user's password
	CA         string         // file with the authorities of kafka+tls:// and tls://; empty: those of the system
	Allow      []netip.Prefix // private networks that are reached
}

func (o *ExportOptions) authorities() (*x509.CertPool, error) {
	if o.CA == "" {
		return nil, nil // those of the system
	}
	text, err := os.ReadFile(o.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", o.CA)
	}
	return pool, nil
}

// ExportTarget makes a target. It connects to nothing.
func (c *Config) ExportTarget(o ExportOptions, log zerolog.Logger) (export.Target, error) {
	if err := checkExport(&o); err != nil {
		return nil, err
	}
	format := file.Format(cmp.Or(o.Format, string(file.JSONL)))
	scheme, rest, isURL := strings.Cut(o.To, "://")
	if !isURL {
		return file.New(file.NewFolder(o.To), format), nil
	}
	authorities, err := o.authorities()
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	switch scheme {
	case kafka.Scheme, kafka.SchemeTLS:
		return kafka.New(kafka.Options{To: o.To, User: o.User, Password: o.Secret, Authorities: authorities})
	case nats.Scheme, nats.SchemeTLS:
		return nats.New(nats.Options{To: o.To, User: o.User, Password: o.Secret, Authorities: authorities})
	case "https", "http":
		of := web.Options{URL: o.To, Allow: o.Allow}
		if o.Secret != "" {
			if of.Secret, err = outbox.ParseSecret(o.Secret); err != nil {
				return nil, fmt.Errorf("secret: %w", err)
			}
		}
		return web.New(of)
	}
	of := c.bucket
	of.Bucket, of.Prefix, _ = strings.Cut(rest, "/")
	of.Log = log
	b, err := bucket.Open(of)
	if err != nil {
		return nil, err
	}
	return file.New(bucket.NewWriter(b), format), nil
}

func (c *Config) exportsToBucket() bool {
	return slices.ContainsFunc(c.exports, func(e exportEntry) bool { return strings.HasPrefix(e.To, BucketScheme) })
}

// ExportFolders are the folders of the setting exports.
func (c *Config) ExportFolders() (folders []string) {
	for _, e := range c.exports {
		if !strings.Contains(e.To, "://") {
			folders = append(folders, c.inHome(e.To))
		}
	}
	return folders
}

// NewExports makes the targets of the setting exports. A folder is named from the home. It connects to nothing.
func (c *Config) NewExports(log zerolog.Logger) (list []export.Export, err error) {
	var faults []error
	for _, e := range c.exports {
		var target export.Target
		o, err := e.options(c)
		if err == nil {
			target, err = c.ExportTarget(o, log)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("exports, %s: %w", e.Name, err))
			continue
		}
		list = append(list, export.Export{Name: e.Name, Workflows: e.Workflows, Target: target})
	}
	return list, errors.Join(faults...)
}

// warnOfExports warns of workflows that an export waits for, perhaps for good.
func (c *Config) warnOfExports(known []string) (warnings document.Faults) {
	for _, e := range c.exports {
		for _, w := range e.Workflows {
			if slices.Contains(known, w) {
				continue
			}
			suggestion := "nothing of it is exported until it is published"
			if near := document.Closest(w, known); near != "" {
				suggestion = "did you mean " + near + "?"
			}
			warnings = append(warnings, document.Fault{File: homedir.SettingsFile, Reason: "exports, " + e.Name + ": the workflow " + w + " is not in the home", Suggestion: suggestion})
		}
	}
	return warnings
}

// readSecret reads a secret that is given as a text, or as a file that is named from the home; empty: neither.
func (c *Config) readSecret(text, file string) (string, error) {
	if file == "" {
		return text, nil
	}
	read, err := os.ReadFile(c.inHome(file))
	if err != nil {
		return "", err
	}
	if read = bytes.TrimSpace(read); len(read) == 0 {
		return "", fmt.Errorf("%s is empty", file)
	}
	return string(read), nil
}
