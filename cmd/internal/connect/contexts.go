package connect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
	"troupe/statemachine/document"
)

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
		return "", fmt.Errorf("find the contexts file: %w; TROUPE_CONTEXTS can say where it is", err)
	}
	return filepath.Join(dir, ".config", "troupe", "contexts.yaml"), nil
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
		return nil, fmt.Errorf("%s holds tokens, but others may use it (mode %04o); run: chmod 600 %s", path, st.Mode().Perm(), path)
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
	faults.Known(field.Value, "address", "token", "tokenFile")
	p.Address = faults.Text(field.Value.Field("address"))
	p.TokenFile = faults.Text(field.Value.Field("tokenFile"))
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
		faults.Add(field.Value, "it has both a token and a tokenFile")
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

// store replaces the file as a whole: whoever reads it sees the old or the new one.
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
