// Package connect says which service a command asks, and as whom: by flags, the environment, or the contexts file,
// which names services and keeps the tokens for them. It knows what a service can be asked to complete an argument or
// to say what was meant by a mistyped one.
package connect

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/statemachine/document"
)

const standardAddress = "http://127.0.0.1:8080"

const adminHost = "home.invalid"

// Connection says which service a command asks, and as whom. What stands closer to the command wins:
//
//  1. the flags --address, --token-file and --cert,
//  2. the context that --context names,
//  3. the environment: TROUPE_ADDRESS and TROUPE_TOKEN (or TROUPE_TOKEN_FILE),
//  4. the context that TROUPE_CONTEXT names,
//  5. the current context of the contexts file,
//  6. the standard address.
//
// NB: a context's token goes to the context's address and nowhere else, so that --address cannot hand it to another
// service.
type Connection struct {
	Address, TokenFile, Context string
	Over                        TLS
	Home                        string // "": the flag was not given
	Timeout                     time.Duration
}

// AddFlags adds the flags that say where to connect.
func AddFlags(cmd *cobra.Command) *Connection {
	c := &Connection{Timeout: 90 * time.Second}
	f := cmd.Flags()
	f.StringVar(&c.Address, "address", "", "URL of the service, or of several nodes of its cluster with commas between them (default: the context's, else "+standardAddress+")")
	f.StringVar(&c.TokenFile, "token-file", "", "file with the API token")
	f.StringVar(&c.Context, "context", "", "context to use; see troupe context")
	c.Over.AddFlags(cmd)
	cli.CompleteFlag(cmd, "context", contextsKnown)
	f.Var(cli.Duration(&c.Timeout), "timeout", "timeout of one request, with its retries")
	return c
}

// AddHome adds --home: the service that runs on it is asked over its socket, without a token.
func (c *Connection) AddHome(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.Home, "home", "", "use the server that runs on this home, without a token")
}

// Client makes the client of the service; retryMax is that of its options.
func (c *Connection) Client(retryMax int) (*client.Client, error) {
	o := client.Options{CallMax: c.Timeout, RetryMax: retryMax, UserAgent: "troupe", Languages: cli.ReaderLanguage()}
	if c.Home != "" {
		if c.Address != "" || c.Context != "" || c.TokenFile != "" || c.Over != (TLS{}) {
			return nil, cli.Usagef("--home names a server on this machine: it cannot be combined with --address, --context, --token-file, --ca, --cert or --cert-key")
		}
		ctx, cancel := context.WithTimeout(context.Background(), homedir.AskMax)
		defer cancel()
		if _, err := Dial(ctx, c.Home); err != nil {
			return nil, err
		}
		o.Address, o.Name = "http://"+adminHost, "the server on "+c.Home
		o.HTTP = &http.Client{Transport: admin.Transport(filepath.Join(c.Home, homedir.AdminSocket))}
	} else {
		var err error
		if o.Address, o.Token, err = c.Resolve(); err != nil {
			return nil, err
		}
		if o.TLS, err = c.TLS(o.Address); err != nil {
			return nil, err
		}
	}
	o.Address, o.Others = Nodes(o.Address)
	made, err := client.New(o)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return made, nil
}

// Nodes takes apart the addresses of the nodes of one service, which stand separated by commas. A comma in a path is none
// of those.
func Nodes(addresses string) (first string, others []string) {
	for i, part := range strings.Split(addresses, ",") {
		switch {
		case i == 0:
			first = part
		case strings.Contains(part, "://"):
			others = append(others, strings.TrimSpace(part))
		case len(others) > 0:
			others[len(others)-1] += "," + part
		default:
			first += "," + part
		}
	}
	return first, others
}

type source struct {
	Profile        // its Name is empty unless it is a context
	label   string // of the token in errors
}

func (c *Connection) sources() ([]source, error) {
	flags := source{Profile{Address: c.Address, TokenFile: c.TokenFile, TLS: c.Over}, "--token-file"}
	if c.Address != "" && c.TokenFile != "" && c.Context == "" {
		return []source{flags}, nil // nothing else is looked at
	}
	contexts, err := LoadContexts()
	if err != nil {
		return nil, err
	}
	named := func(name, by string) ([]source, error) {
		if name == "" {
			return nil, nil
		}
		p, err := contexts.Named(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", by, err)
		}
		return []source{{*p, "context " + name}}, nil
	}
	environment := []source{
		{Profile{Address: os.Getenv("TROUPE_ADDRESS"), Token: os.Getenv("TROUPE_TOKEN")}, "TROUPE_TOKEN"},
		{Profile{TokenFile: os.Getenv("TROUPE_TOKEN_FILE")}, "TROUPE_TOKEN_FILE"},
	}
	standard := source{Profile: Profile{Address: standardAddress}}
	if c.Context != "" {
		chosen, err := named(c.Context, "--context")
		return slices.Concat([]source{flags}, chosen, environment, []source{standard}), err
	}
	chosen, err := named(os.Getenv("TROUPE_CONTEXT"), "TROUPE_CONTEXT")
	if chosen == nil && err == nil {
		chosen, err = named(contexts.Current, contexts.path)
	}
	return slices.Concat([]source{flags}, environment, chosen, []source{standard}), err
}

// Resolve finds the address and the token, which is empty where a certificate stands closer to the command.
func (c *Connection) Resolve() (address, token string, err error) {
	sources, err := c.sources()
	if err != nil {
		return "", "", err
	}
	address = sources[slices.IndexFunc(sources, func(s source) bool { return s.Address != "" })].Address
	name, why := "local", "" // for the advice
	for _, s := range sources {
		switch {
		case s.Name == "":
		case SameAddress(s.Address, address):
			name = s.Name
		case s.Token != "" || s.TokenFile != "":
			why = fmt.Sprintf(" (that of the context %s is for %s)", s.Name, s.Address)
			continue
		default:
			continue
		}
		switch {
		case s.Token != "":
			token, err = CheckedToken(s.label, s.Token)
			return address, token, err
		case s.TokenFile != "":
			token, err = ReadTokenFile(s.label, s.TokenFile)
			return address, token, err
		case s.Cert != "":
			return address, "", nil
		}
	}
	return "", "", NoTokenError{fmt.Errorf(`there is no token for %s%s. Create one on the server's machine and store it in a context:

  troupe token create --home ./troupe-home --user LOGIN | troupe context set %s --address %s --token-stdin

Or give one with --token-file FILE, or in TROUPE_TOKEN, or a certificate with --cert FILE`, address, why, name, address)}
}

// NoTokenError says that no source has a token for the address.
type NoTokenError struct{ error }

// SameAddress compares addresses of services.
func SameAddress(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// ReadTokenFile reads a file that holds a token alone.
func ReadTokenFile(source, name string) (string, error) {
	text, err := cli.ReadInputFile(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	return CheckedToken(source+" "+name, string(text))
}

// CheckedToken takes the white space off a token. Errors never show it.
func CheckedToken(source, text string) (string, error) {
	token := string(bytes.TrimSpace([]byte(text)))
	if token == "" {
		return "", fmt.Errorf("%s: it has no token", source)
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' || c == ',' {
			return "", fmt.Errorf("%s: not a token", source)
		}
	}
	return token, nil
}

// Explain makes a usage error of what the client would not send, and adds to errors what a person at a terminal can do.
func Explain(err error) error {
	var refused *client.Error
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.Is(err, client.ErrInvalid):
		return cli.Usage(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w; no service listens there: start one with troupe serve, or give another --address", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w; it closed the connection before it had answered: it may have ended", err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w; the service does not speak TLS: begin its address with http://", err)
	case errors.As(err, &unknown):
		return fmt.Errorf("%w; name the authority that signs the service's certificate with --ca FILE", err)
	case errors.As(err, &refused) && refused.Status == 400 && refused.Code == "":
		return fmt.Errorf("%w; it is not an answer of the service: if that speaks TLS, begin its address with https://", err)
	case errors.As(err, &refused) && refused.Status == 401:
		return fmt.Errorf("%w; the token may be revoked or expired: troupe token list", err)
	}
	return err
}

// FaultsOf are faults as a service has answered them.
func FaultsOf(wire []api.FileFault) (faults document.Faults) {
	for _, f := range wire {
		faults = append(faults, document.Fault(f))
	}
	return faults
}

// Contexts is the contexts file, which names services and keeps the tokens for them:
//
//	current: local
//	contexts:
//	  local:
//	    address: http://127.0.0.1:8080
//	    token: tok_…
//	  production:
//	    address: https://example.org/platform
//	    tokenFile: /home/jane/.troupe-token
//	    ca: /home/jane/company-ca.pem
//	  nightly:
//	    address: https://example.org/platform
//	    cert: /etc/troupe/nightly.crt
//	    key: /etc/troupe/nightly.key
type Contexts struct {
	path    string
	Current string // a name in all, or empty
	All     []Profile
}

// Profile is one context. Of Token and TokenFile at most one is set.
type Profile struct {
	Name      string `json:"-"`
	Address   string `json:"address"`
	Token     string `json:"token,omitempty"`
	TokenFile string `json:"tokenFile,omitempty"`
	TLS
}

// ContextName is what a context may be called.
var ContextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func contextsPath() (string, error) {
	if path := os.Getenv("TROUPE_CONTEXTS"); path != "" {
		return path, nil
	}
	// NB: a relative XDG_CONFIG_HOME is invalid and ignored, as its specification has it.
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "troupe", "contexts.yaml"), nil
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the contexts file: %w; TROUPE_CONTEXTS can name it", err)
	}
	return filepath.Join(dir, ".config", "troupe", "contexts.yaml"), nil
}

// Folder is where the contexts file is, and what else commands keep for a person.
func Folder() (string, error) {
	path, err := contextsPath()
	return filepath.Dir(path), err
}

// LoadContexts reads the file, which may be missing. It is refused when others than its owner have a right to it,
// because it holds tokens.
func LoadContexts() (*Contexts, error) {
	path, err := contextsPath()
	if err != nil {
		return nil, err
	}
	c := &Contexts{path: path}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read contexts: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	st, err := file.Stat()
	if err == nil && st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s holds tokens, but other users can access it (mode %04o); run: chmod 600 %s", path, st.Mode().Perm(), path)
	}
	text, err := cli.ReadInput(file)
	if err != nil {
		return nil, fmt.Errorf("read contexts: %s: %w", path, err)
	}
	tree, err := document.Parse(path, text)
	if err != nil {
		return nil, hideScalars(err)
	}
	return c, c.read(tree)
}

// hideScalars leaves of the faults of a file only where they are: the reasons may repeat a part of a token.
func hideScalars(err error) error {
	var faults document.Faults
	if !errors.As(err, &faults) {
		return err
	}
	for i := range faults {
		faults[i].Reason, faults[i].Suggestion = "this is not valid YAML", ""
	}
	return faults
}

func (c *Contexts) read(tree *document.Node) error {
	if tree.Kind == document.Null {
		return nil
	}
	faults := document.Collector{File: c.path}
	faults.Known(tree, "current", "contexts")
	c.Current = faults.Text(tree.Field("current"))
	if all := tree.Field("contexts"); all != nil && all.Kind == document.Mapping {
		for _, field := range all.Fields {
			c.All = append(c.All, readProfile(&faults, field))
		}
	} else if all != nil && all.Kind != document.Null {
		faults.Add(all, "must be a mapping of names to contexts")
	}
	if c.Current != "" && c.Find(c.Current) == nil {
		faults.Add(tree.Field("current"), "there is no context of this name")
	}
	return faults.Err()
}

func readProfile(faults *document.Collector, field document.Field) Profile {
	p := Profile{Name: field.Key.Text}
	if !ContextName.MatchString(p.Name) {
		faults.Add(field.Key, "a name has 1 to 64 letters, digits, dots, dashes and underscores")
	}
	faults.Known(field.Value, "address", "token", "tokenFile", "ca", "cert", "key")
	p.Address = faults.Text(field.Value.Field("address"))
	p.TokenFile = faults.Text(field.Value.Field("tokenFile"))
	p.CA, p.Cert, p.Key = faults.Text(field.Value.Field("ca")), faults.Text(field.Value.Field("cert")), faults.Text(field.Value.Field("key"))
	// NB: not by the collector, which shows a wrong value.
	if token := field.Value.Field("token"); token != nil {
		if token.Kind != document.String {
			faults.Add(token, "a token must be a string")
		}
		p.Token = token.Text
	}
	switch {
	case p.Address == "":
		faults.Add(field.Value, "the address is missing")
	case p.Token != "" && p.TokenFile != "":
		faults.Add(field.Value, "it must not have both a token and a tokenFile")
	}
	return p
}

// Find returns the context of a name, nil when there is none.
func (c *Contexts) Find(name string) *Profile {
	i := slices.IndexFunc(c.All, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &c.All[i]
}

// Named is find for a name that the user has given.
func (c *Contexts) Named(name string) (*Profile, error) {
	if p := c.Find(name); p != nil {
		return p, nil
	}
	advice := ""
	if near := document.Closest(name, c.names()); near != "" {
		advice = fmt.Sprintf("; did you mean %q?", near)
	}
	return nil, fmt.Errorf("there is no context %q in %s%s", name, c.path, advice)
}

func (c *Contexts) names() []string {
	names := make([]string, len(c.All))
	for i := range c.All {
		names[i] = c.All[i].Name
	}
	return names
}

// store replaces the file as a whole: anyone who reads it sees the old or the new one.
func (c *Contexts) store() error {
	path := c.path
	// A link to where the file really is stays one.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	text, err := c.yaml()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return fmt.Errorf("store contexts: %w", err)
	}
	if err := homedir.WriteWhole(path, text, 0o600); err != nil {
		return fmt.Errorf("store contexts: %w", err)
	}
	return nil
}

// ChangeContexts changes the file.
func ChangeContexts(change func(all *Contexts) error) error {
	all, err := LoadContexts()
	if err == nil {
		err = change(all)
	}
	if err != nil {
		return err
	}
	return all.store()
}

func (c *Contexts) yaml() ([]byte, error) {
	members := make([]string, len(c.All)) // a map would change their order
	for i, p := range c.All {
		member, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		members[i] = strconv.Quote(p.Name) + ":" + string(member)
	}
	text, err := json.Marshal(struct {
		Current  string          `json:"current,omitempty"`
		Contexts json.RawMessage `json:"contexts"`
	}{c.Current, json.RawMessage("{" + strings.Join(members, ",") + "}")})
	if err != nil {
		return nil, err
	}
	return cli.AppendYAML([]byte("# Services and the tokens for them; `troupe context` writes this file.\n"), text)
}

// ContextArgument has the shell complete the name of a context.
func ContextArgument(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return contextsKnown(), cobra.ShellCompDirectiveNoFileComp
}
