package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"troupe/statemachine/document"
)

// homeWith makes a home that has only a troupe.yaml.
func homeWith(t *testing.T, settings string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, settingsFile), []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// samples are values that a setting of a type can have and that no default is.
func samples(f *pflag.Flag) [3]string {
	switch {
	case f.Name == "log-level":
		return [3]string{"debug", "warn", "error"}
	case f.Name == "log-format":
		return [3]string{"json", "text", "json"}
	}
	return map[string][3]string{
		"string": {"one", "two", "three"}, "int": {"11", "12", "13"},
		"addresses": {"10.0.0.1/32", "10.0.0.0/8,fd00::/8", "192.168.7.0/24"}, "time": {"11s", "12s", "13s"}, "bytes": {"11KiB", "12KiB", "13KiB"},
	}[f.Value.Type()]
}

// TestPrecedence holds home.md for every setting that there is: flag over
// environment over file over default.
func TestPrecedence(t *testing.T) {
	newConfigFlags().flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "home" {
			return // it says where the file is
		}
		t.Run(f.Name, func(t *testing.T) {
			inFile, inEnvironment, inFlag := samples(f)[0], samples(f)[1], samples(f)[2]
			empty, home := homeWith(t, ""), homeWith(t, keyName(f.Name)+": "+inFile+"\n")
			wants := func(home, flag, value, source string) {
				t.Helper()
				c := newConfigFlags()
				if err := c.flags.Set("home", home); err != nil {
					t.Fatal(err)
				}
				if flag != "" {
					if err := c.flags.Set(f.Name, flag); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.load(); err != nil {
					t.Fatalf("load: %v", err)
				}
				if got := c.flags.Lookup(f.Name).Value.String(); got != value || c.sources[f.Name] != source {
					t.Errorf("got %q from %s, want %q from %s", got, c.sources[f.Name], value, source)
				}
			}
			wants(empty, "", f.DefValue, "default")
			wants(home, "", inFile, settingsFile)
			t.Setenv(envName(f.Name), inEnvironment)
			wants(home, "", inEnvironment, envName(f.Name))
			wants(home, inFlag, inFlag, "flag")
		})
	})
}

func TestSettingsFileFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"an unknown key", "# x\nlisten: :80\nlissten: :81\n", "troupe.yaml:3:1: "},
		{"the near word is suggested", "baseBath: /x\n", "basePath"},
		{"a list", "listen: [a]\n", "troupe.yaml:1:9: listen: must be a single value"},
		{"a word for a number", "queriesMax: many\n", "troupe.yaml:1:13: queriesMax: "},
		{"a time without unit", "drainMax: 8\n", "troupe.yaml:1:11: drainMax: "},
		{"a size with another unit", "cacheBytes: 1MB\n", "troupe.yaml:1:13: cacheBytes: "},
		{"the home itself", "home: /elsewhere\n", "troupe.yaml:1:1: unknown key"},
		{"broken YAML", "listen: [\n", "troupe.yaml:"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newConfigFlags()
			if err := c.flags.Set("home", homeWith(t, test.text)); err != nil {
				t.Fatal(err)
			}
			err := c.load()
			var faults document.Faults
			if !errors.As(err, &faults) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a fault that says %q", err, test.want)
			}
		})
	}
}

func TestWrongEnvironment(t *testing.T) {
	t.Setenv("TROUPE_SHARDS", "many")
	t.Setenv("TROUPE_SESSION_MAX", "7y")
	c := newConfigFlags()
	if err := c.flags.Set("home", homeWith(t, "")); err != nil {
		t.Fatal(err)
	}
	err := c.load()
	for _, want := range []string{"TROUPE_SHARDS: ", "TROUPE_SESSION_MAX: must be a time"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want both faults, %q among them", err, want)
		}
	}
}

// TestExampleSettings holds that every line that the example shows as a comment
// is a setting that works.
func TestExampleSettings(t *testing.T) {
	text, err := example.ReadFile("example/" + settingsFile)
	if err != nil {
		t.Fatal(err)
	}
	var active strings.Builder
	count := 0
	for line := range strings.Lines(string(text)) {
		if key, _, found := strings.Cut(strings.TrimPrefix(line, "# "), ": "); found && !strings.Contains(key, " ") {
			active.WriteString(strings.TrimPrefix(line, "# "))
			count++
		}
	}
	if count == 0 {
		t.Fatal("the example shows no setting")
	}
	c := newConfigFlags()
	if err := c.flags.Set("home", homeWith(t, active.String())); err != nil {
		t.Fatal(err)
	}
	if err := c.load(); err != nil {
		t.Errorf("%d settings: %v\n%s", count, err, active.String())
	}
}
