package config

import (
	"cmp"
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
	"troupe/actors/export/web"
	"troupe/actors/outbox"
	"troupe/actors/repository/bucket"
	"troupe/cmd/internal/cli"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

const exportsType = "exports"

type exportEntry struct {
	Name       string   `json:"name"`
	To         string   `json:"to"`
	Workflows  []string `json:"workflows,omitempty"`
	Format     string   `json:"format,omitempty"`
	Secret     string   `json:"secret,omitempty"`
	SecretFile string   `json:"secretFile,omitempty"`
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
	faults.Known(n, "name", "to", "workflows", "format", "secret", "secretFile")
	for key, to := range map[string]*string{"name": &e.Name, "to": &e.To, "format": &e.Format, "secret": &e.Secret, "secretFile": &e.SecretFile} {
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
		if err := checkExport(e.To, e.Format, e.Secret+e.SecretFile != ""); err != nil {
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
const ExportForms = "a folder, s3://BUCKET/PREFIX, https://HOST/PATH, or kafka://HOST:PORT/TOPIC"

// ExportFormats are those of files.
const ExportFormats = "jsonl or parquet"

// checkExport says what is wrong with a target, without its secrets.
func checkExport(to, format string, signed bool) error {
	scheme, _, isURL := strings.Cut(to, "://")
	isEndpoint := isURL && (scheme == "https" || scheme == "http")
	isKafka := isURL && scheme == "kafka"
	isFiles := !isURL || to != BucketScheme && scheme+"://" == BucketScheme
	switch {
	case to == "":
		return errors.New("it has no target: " + ExportForms)
	case !isEndpoint && !isKafka && !isFiles:
		return fmt.Errorf("%s:// is not known; it is %s", scheme, ExportForms)
	case format != "" && format != string(file.JSONL) && format != string(file.Parquet):
		return fmt.Errorf("format %q: it is "+ExportFormats, format)
	case format == string(file.Parquet) && !isFiles:
		return errors.New("format parquet: only a folder and s3:// have files")
	case signed && !isEndpoint:
		return errors.New("secret: only requests to https:// are signed")
	}
	return nil
}

// ExportOptions say how an export goes to its target.
type ExportOptions struct {
	To, Format string
	Secret     []byte         // signs requests
	Allow      []netip.Prefix // private networks that are reached
}

// ExportTarget makes a target. It connects to nothing.
func (c *Config) ExportTarget(o ExportOptions, log zerolog.Logger) (export.Target, error) {
	if err := checkExport(o.To, o.Format, o.Secret != nil); err != nil {
		return nil, err
	}
	format := file.Format(cmp.Or(o.Format, string(file.JSONL)))
	if rest, ok := strings.CutPrefix(o.To, BucketScheme); ok {
		of := c.bucket
		of.Bucket, of.Prefix, _ = strings.Cut(rest, "/")
		of.Log = log
		b, err := bucket.Open(of)
		if err != nil {
			return nil, err
		}
		return file.New(bucket.NewWriter(b), format), nil
	}
	if strings.HasPrefix(o.To, "kafka://") {
		return kafka.New(o.To)
	}
	if strings.Contains(o.To, "://") {
		return web.New(web.Options{URL: o.To, Secret: o.Secret, Allow: o.Allow})
	}
	return file.New(file.NewFolder(o.To), format), nil
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
		o := ExportOptions{To: e.To, Format: e.Format, Allow: c.webhooks.Allow}
		if !strings.Contains(o.To, "://") {
			o.To = c.inHome(o.To)
		}
		var target export.Target
		o.Secret, err = c.readSecret(e.Secret, e.SecretFile)
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

// readSecret reads a secret that is given as a text, or as a file that is named from the home; nil: neither.
func (c *Config) readSecret(text, file string) ([]byte, error) {
	if file != "" {
		read, err := os.ReadFile(c.inHome(file))
		if err != nil {
			return nil, err
		}
		text = string(read)
	}
	if text == "" {
		return nil, nil
	}
	return outbox.ParseSecret(text)
}
