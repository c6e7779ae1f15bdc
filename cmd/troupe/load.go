package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// settingsFile is where settings stand in a home.
const settingsFile = "troupe.yaml"

// load fills in what no flag said: from the environment, then from troupe.yaml.
func (c *config) load() error {
	var faults []error
	for _, s := range c.settings {
		if c.flags.Changed(s.name) {
			c.sources[s.name] = "flag"
			continue
		}
		c.sources[s.name] = "default"
		if value, ok := os.LookupEnv(envName(s.name)); ok {
			faults = append(faults, c.set(s, value, envName(s.name)))
		}
		if s.value.Type() == secretType {
			faults = append(faults, c.loadSecret(s))
		}
	}
	faults = append(faults, c.loadFile())
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return c.validate()
}

func (c *config) set(s setting, value, source string) error {
	if err := s.value.Set(value); err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	c.sources[s.name] = source
	return nil
}

// loadSecret reads a secret from the file that the environment names. Its last
// line end is not part of it.
func (c *config) loadSecret(s setting) error {
	source := envName(s.name) + "_FILE"
	file, ok := os.LookupEnv(source)
	switch {
	case !ok:
		return nil
	case c.sources[s.name] != "default":
		return fmt.Errorf("%s and %s are both set", envName(s.name), source)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	return c.set(s, strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), source)
}

// loadFile reads troupe.yaml of the home, which may be missing.
func (c *config) loadFile() error {
	path := filepath.Join(c.home, settingsFile)
	if err := wantFile(path); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	tree, err := document.Parse(settingsFile, text)
	if err != nil {
		return err
	}
	if tree.Kind == document.Null {
		return nil
	}
	known := map[string]setting{} // by key
	for _, s := range c.settings {
		if s.name != "home" {
			known[keyName(s.name)] = s
		}
	}
	faults := document.Collector{File: settingsFile}
	c.loadFields(&faults, tree, "", known)
	return faults.Err()
}

// loadFields takes over the members of a mapping. above is the group that it is,
// with a dot behind it; empty for the whole file.
func (c *config) loadFields(faults *document.Collector, n *document.Node, above string, known map[string]setting) {
	here := map[string]bool{} // settings and groups of this mapping
	for key := range known {
		if rest, ok := strings.CutPrefix(key, above); ok {
			first, _, _ := strings.Cut(rest, ".")
			here[first] = true
		}
	}
	faults.Known(n, slices.Sorted(maps.Keys(here))...)
	for _, field := range n.Fields {
		key, value := above+field.Key.Text, field.Value
		s, isSetting := known[key]
		switch {
		case isSetting && c.sources[s.name] == "default":
			c.loadValue(faults, s, value)
		case isSetting || !here[field.Key.Text] || value.Kind == document.Null:
		case value.Kind == document.Mapping:
			c.loadFields(faults, value, key+".", known)
		default:
			faults.Add(value, "%s: must be a group of settings", key)
		}
	}
}

// loadValue takes over one setting.
func (c *config) loadValue(faults *document.Collector, s setting, n *document.Node) {
	var err error
	switch n.Kind {
	case document.Null:
		return
	case document.String, document.Number, document.Bool:
		err = s.value.Set(n.Text)
	default:
		err = errors.New("must be a single value")
		switch s.value.Type() {
		case rolesType, endpointsType:
			if before := len(faults.Faults()); s.value.Type() == endpointsType {
				if readEndpoints(faults, n); len(faults.Faults()) > before {
					return // with their places
				}
			}
			var tree data.Value
			if tree, err = n.Data(); err == nil {
				err = s.value.Set(tree.String())
			}
		case prefixesType:
			if n.Kind == document.Sequence {
				err = s.value.Set(strings.Join(faults.Texts(n), ","))
			}
		}
	}
	if err != nil {
		faults.Add(n, "%s: %v", keyName(s.name), err)
		return
	}
	c.sources[s.name] = settingsFile
}
