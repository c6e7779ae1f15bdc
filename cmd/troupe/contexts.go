package main

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

	"troupe/statemachine/document"
)

// The contexts file names services and keeps the tokens for them:
//
//	current: local
//	contexts:
//	  local:
//	    address: http://127.0.0.1:8080
//	    token: tok_…
//	  production:
//	    address: https://example.org/platform
//	    tokenFile: /home/jane/.troupe-token
type contexts struct {
	path    string
	current string // a name in all, or empty
	all     []profile
}

// profile is one context. Of Token and TokenFile at most one is set.
type profile struct {
	Name      string `json:"-"`
	Address   string `json:"address"`
	Token     string `json:"token,omitempty"`
	TokenFile string `json:"tokenFile,omitempty"`
}

// contextName is what a context may be called.
var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// contextsPath is where the contexts file is.
func contextsPath() (string, error) {
	if path := os.Getenv("TROUPE_CONTEXTS"); path != "" {
		return path, nil
	}
	// NB: a relative XDG_CONFIG_HOME is invalid and ignored, as its
	// specification has it.
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "troupe", "contexts.yaml"), nil
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the contexts file: %w; TROUPE_CONTEXTS can say where it is", err)
	}
	return filepath.Join(dir, ".config", "troupe", "contexts.yaml"), nil
}

// loadContexts reads the file, which may be missing. It is refused when others
// than its owner have a right to it, because it holds tokens.
func loadContexts() (*contexts, error) {
	path, err := contextsPath()
	if err != nil {
		return nil, err
	}
	c := &contexts{path: path}
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
	text, err := readInput(file)
	if err != nil {
		return nil, fmt.Errorf("read contexts: %s: %w", path, err)
	}
	tree, err := document.Parse(path, text)
	if err != nil {
		return nil, hideScalars(err)
	}
	return c, c.read(tree)
}

// hideScalars leaves of the faults of a file only where they are: the reasons
// may repeat a part of the text, which may be a part of a token.
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

// read takes the file's tree apart.
func (c *contexts) read(tree *document.Node) error {
	if tree.Kind == document.Null {
		return nil
	}
	faults := document.Collector{File: c.path}
	faults.Known(tree, "current", "contexts")
	c.current = faults.Text(tree.Field("current"))
	if all := tree.Field("contexts"); all != nil && all.Kind == document.Mapping {
		for _, field := range all.Fields {
			c.all = append(c.all, readProfile(&faults, field))
		}
	} else if all != nil && all.Kind != document.Null {
		faults.Add(all, "must be a mapping of names to contexts")
	}
	if c.current != "" && c.find(c.current) == nil {
		faults.Add(tree.Field("current"), "there is no context of this name")
	}
	return faults.Err()
}

func readProfile(faults *document.Collector, field document.Field) profile {
	p := profile{Name: field.Key.Text}
	if !contextName.MatchString(p.Name) {
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

// find returns the context of a name, nil when there is none.
func (c *contexts) find(name string) *profile {
	i := slices.IndexFunc(c.all, func(p profile) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &c.all[i]
}

// named is find for a name that the user has given.
func (c *contexts) named(name string) (*profile, error) {
	if p := c.find(name); p != nil {
		return p, nil
	}
	advice := ""
	if near := document.Closest(name, c.names()); near != "" {
		advice = fmt.Sprintf("; did you mean %q?", near)
	}
	return nil, fmt.Errorf("there is no context %q in %s%s", name, c.path, advice)
}

func (c *contexts) names() []string {
	names := make([]string, len(c.all))
	for i := range c.all {
		names[i] = c.all[i].Name
	}
	return names
}

// store replaces the file as a whole: whoever reads it sees the old or the new
// one.
func (c *contexts) store() error {
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
	if err := writeWhole(path, text, 0o600); err != nil {
		return fmt.Errorf("store contexts: %w", err)
	}
	return nil
}

// writeWhole puts a file in the place of another one, so that nobody ever reads a part of it.
func writeWhole(path string, text []byte, mode fs.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// changeContexts changes the file.
func changeContexts(change func(all *contexts) error) error {
	all, err := loadContexts()
	if err == nil {
		err = change(all)
	}
	if err != nil {
		return err
	}
	return all.store()
}

// yaml is the text of the file.
func (c *contexts) yaml() ([]byte, error) {
	members := make([]string, len(c.all)) // a map would change their order
	for i, p := range c.all {
		member, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		members[i] = strconv.Quote(p.Name) + ":" + string(member)
	}
	text, err := json.Marshal(struct {
		Current  string          `json:"current,omitempty"`
		Contexts json.RawMessage `json:"contexts"`
	}{c.current, json.RawMessage("{" + strings.Join(members, ",") + "}")})
	if err != nil {
		return nil, err
	}
	return appendYAML([]byte("# Services and the tokens for them; `troupe context` writes this file.\n"), text)
}
