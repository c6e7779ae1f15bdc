package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Load fills in what no flag said: from the environment, then from troupe.yaml.
func (c *Config) Load() error {
	var faults []error
	for _, s := range c.Settings {
		if c.Flags.Changed(s.Name) {
			c.sources[s.Name] = "flag"
			continue
		}
		c.sources[s.Name] = "default"
		if value, ok := os.LookupEnv(envName(s.Name)); ok {
			faults = append(faults, c.set(s, value, envName(s.Name)))
		}
		if s.Value.Type() == secretType {
			faults = append(faults, c.loadSecret(s))
		}
	}
	faults = append(faults, c.loadFile())
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return c.validate()
}

// IsChosen reports whether somebody chose the value of a setting, so that it is not the default.
func (c *Config) IsChosen(name string) bool { return c.sources[name] != "default" }

// LoadQuiet is Load for a command that is not the server: it logs what is amiss alone.
func (c *Config) LoadQuiet() error {
	err := c.Load()
	c.LogLevel, c.quiet = "warn", true
	return err
}

func (c *Config) set(s setting, value, source string) error {
	if err := s.Value.Set(value); err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	c.sources[s.Name] = source
	return nil
}

// The last line end of the file is not part of a secret.
func (c *Config) loadSecret(s setting) error {
	source := envName(s.Name) + "_FILE"
	file, ok := os.LookupEnv(source)
	switch {
	case !ok:
		return nil
	case c.IsChosen(s.Name):
		return fmt.Errorf("%s and %s are both set", envName(s.Name), source)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	return c.set(s, strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), source)
}

func (c *Config) loadFile() error {
	path := filepath.Join(c.Home, homedir.SettingsFile)
	if err := homedir.DemandFile(path); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	tree, err := document.Parse(homedir.SettingsFile, text)
	if err != nil {
		return err
	}
	if tree.Kind == document.Null {
		return nil
	}
	known := map[string]setting{} // by key
	for _, s := range c.Settings {
		if s.Name != "home" {
			known[KeyName(s.Name)] = s
		}
	}
	faults := document.Collector{File: homedir.SettingsFile}
	c.loadFields(&faults, tree, "", known)
	return faults.Err()
}

// loadFields takes over the members of a mapping. above is the group that it is, with a dot behind it.
func (c *Config) loadFields(faults *document.Collector, n *document.Node, above string, known map[string]setting) {
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
		case isSetting && !c.IsChosen(s.Name):
			c.loadValue(faults, s, value)
		case isSetting || !here[field.Key.Text] || value.Kind == document.Null:
		case value.Kind == document.Mapping:
			c.loadFields(faults, value, key+".", known)
		default:
			faults.Add(value, "%s: must be a group of settings", key)
		}
	}
}

func (c *Config) loadValue(faults *document.Collector, s setting, n *document.Node) {
	var err error
	switch n.Kind {
	case document.Null:
		return
	case document.String, document.Number, document.Bool:
		err = s.Value.Set(n.Text)
	default:
		err = errors.New("must be a single value")
		switch s.Value.Type() {
		case rolesType, endpointsType, exportsType:
			before := len(faults.Faults())
			switch s.Value.Type() {
			case endpointsType:
				readEndpoints(faults, n)
			case exportsType:
				readExports(faults, n)
			}
			if len(faults.Faults()) > before {
				return // with their places
			}
			var tree data.Value
			if tree, err = n.Data(); err == nil {
				err = s.Value.Set(tree.String())
			}
		case prefixesType, sitesType:
			if n.Kind == document.Sequence {
				err = s.Value.Set(strings.Join(faults.Texts(n), ","))
			}
		}
	}
	if err != nil {
		faults.Add(n, "%s: %v", KeyName(s.Name), err)
		return
	}
	c.sources[s.Name] = homedir.SettingsFile
}

// Command is troupe config.
func Command() *cobra.Command {
	c := New()
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show all settings: value, source and meaning",
		Example: "  troupe config --home ./troupe-home\n" +
			"  TROUPE_LISTEN=:9000 troupe config",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Load(); err != nil {
				return err
			}
			rows := [][]string{{"KEY", "VALUE", "SOURCE", "ENVIRONMENT", "MEANING"}}
			for _, s := range c.Settings {
				rows = append(rows, []string{KeyName(s.Name), s.Value.String(), c.sources[s.Name], envName(s.Name), s.Help})
			}
			return cli.Table(cmd.OutOrStdout(), rows)
		},
	}
	cmd.Flags().AddFlagSet(c.Flags)
	return cmd
}
