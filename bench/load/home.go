package load

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// WriteHome makes a home with the workflow of the scenario and its users.
func (s *Scenario) WriteHome(home string) error {
	if s.Definition == "" {
		return errors.New("the scenario names no definition, so no server can be started with it: name one, or give the address of a server that has the workflow")
	}
	identity, err := s.IdentityText()
	if err != nil {
		return err
	}
	file := filepath.Base(cmp.Or(s.DefinitionFile, "workflow.yaml"))
	files := map[string][]byte{"identity.yaml": []byte(identity), filepath.Join("workflows", file): []byte(s.Definition)}
	for name, text := range s.Refs {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("the definition refers to %s, which is not below its folder", name)
		}
		files[filepath.Join("workflows", filepath.FromSlash(name))] = text
	}
	for name, text := range files {
		name = filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// IdentityText returns an identity.yaml (as JSON, which is YAML) with the users of the
// scenario, and every role that they or the definition name.
func (s *Scenario) IdentityText() (string, error) {
	type role struct {
		ID         string   `json:"id"`
		Privileges []string `json:"privileges"`
	}
	type user struct {
		ID         string   `json:"id"`
		Roles      []string `json:"roles"`
		Privileges []string `json:"privileges"`
	}
	var out struct {
		Roles []role `json:"roles"`
		Users []user `json:"users"`
	}
	names := slices.Clone(s.roles)
	for _, u := range s.Users {
		names = append(names, u.Roles...)
		out.Users = append(out.Users, user{u.Name, append([]string{}, u.Roles...), append([]string{}, u.Privileges...)})
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		out.Roles = append(out.Roles, role{name, []string{"mod-form-portal"}})
	}
	text, err := json.MarshalIndent(out, "", "  ")
	return string(text) + "\n", err
}

// UserNames are the names of the users.
func (s *Scenario) UserNames() (names []string) {
	for _, u := range s.Users {
		names = append(names, u.Name)
	}
	return names
}
