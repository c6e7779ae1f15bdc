package home

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"troupe/statemachine"
	"troupe/statemachine/document"
)

// stop stops a watcher.
func stop(t *testing.T, w *Watcher) {
	t.Helper()
	if err := w.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	people = "roles: [{id: clerk, privileges: [mod-form]}]\nusers:\n  - {id: ann, roles: [clerk]}\n"
	simple = "id: simple\nallow: {create: {roles: [clerk]}}\nschema: {svcPublic: {$ref: simple.schema.json}}\n" +
		"stateMachines: {m: {states: {a: {on: {go: b}}, b: {type: final}}}}\n"
	shape = `{"type": "object"}`
)

// folder writes a home; names end in their content's file name.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func parser(t *testing.T) *statemachine.Parser {
	t.Helper()
	p, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLoadReadsTheWholeSet(t *testing.T) {
	dir := folder(t, map[string]string{
		"identity.yaml": people, "workflows/simple.yaml": simple, "workflows/simple.schema.json": shape,
		"workflows/.hidden.yaml": "nonsense", "workflows/readme.txt": "nonsense",
	})
	set, err := Load(os.DirFS(dir), parser(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Workflows) != 1 || set.Workflows[0].Parsed.ID != "simple" {
		t.Errorf("workflows: got %v", set.Workflows)
	}
	if got := string(set.Workflows[0].Refs["simple.schema.json"]); got != shape {
		t.Errorf("the file that the definition refers to: got %q", got)
	}
	if set.Directory.Principal("ann") == nil {
		t.Error("user ann is missing")
	}
}

func TestLoadRefusesAFaultySetWithEveryFault(t *testing.T) {
	dir := folder(t, map[string]string{
		"identity.yaml":         people,
		"workflows/a.yaml":      strings.ReplaceAll(simple, "clerk", "clerc"),
		"workflows/b.yaml":      "id: [",
		"workflows/c.yaml":      strings.ReplaceAll(simple, "schema: {svcPublic: {$ref: simple.schema.json}}\n", ""),
		"workflows/d.json":      `{"id": "simple", "stateMachines": {"m": {"states": {"a": {"on": {"go": "b"}}, "b": {"type": "final"}}}}}`,
		"workflows/e/deep.yaml": "nonsense",
	})
	set, err := Load(os.DirFS(dir), parser(t))
	var faults document.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("got %v, want faults", err)
	}
	for _, want := range []string{`workflows/a.yaml:2:25: unknown role "clerc" (did you mean "clerk"?)`, "workflows/b.yaml:2:1: ", "workflows/d.json:1:1: workflow simple version 1 stands in workflows/c.yaml as well"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("faults\n%v\nlack %q", err, want)
		}
	}
	if set.Directory == nil {
		t.Error("the directory of a right identity.yaml is missing")
	}
}

func TestLoadWithoutAHome(t *testing.T) {
	if _, err := Load(os.DirFS(filepath.Join(t.TempDir(), "nowhere")), parser(t)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want not exist", err)
	}
}

func TestWatchCallsBackForWhatMatters(t *testing.T) {
	dir := folder(t, map[string]string{"identity.yaml": people})
	changed := make(chan struct{}, 100)
	w, err := NewWatcher(WatchOptions{Dir: dir, Access: func() bool { return false }, Definitions: func() bool { changed <- struct{}{}; return false }, Settle: 20 * time.Millisecond, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	w.Start()
	defer stop(t, w)
	await := func(what string) {
		t.Helper()
		t.Log("waiting for " + what)
		<-changed
	}
	// Nothing of this matters; the change behind it must be the first call.
	write(t, filepath.Join(dir, "data", "000001.log"), "x")
	write(t, filepath.Join(dir, ".swp"), "x")
	write(t, filepath.Join(dir, "repository", "a.rml"), "x")
	write(t, filepath.Join(dir, "identity.yaml"), people+"\n")
	await("a changed identity.yaml")
	write(t, filepath.Join(dir, "rights.yaml"), "[]\n")
	await("a new rights.yaml")
	if err := os.Remove(filepath.Join(dir, "rights.yaml")); err != nil {
		t.Fatal(err)
	}
	await("a removed rights.yaml")
	for _, folder := range []string{"workflows", "forms", "checklists"} {
		file := filepath.Join(dir, folder, "simple.yaml")
		write(t, file, simple)
		await("a new folder " + folder)
		shape := filepath.Join(dir, folder, "schemas", "deep", "a.schema.json") // what a file refers to
		write(t, shape, "{}")
		await("a new folder below " + folder)
		write(t, shape, `{"type": "object"}`)
		await("a changed file below " + folder)
		write(t, file, simple+"\n")
		await("a changed file in " + folder)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		await("a removed file in " + folder)
		if err := os.Rename(filepath.Join(dir, folder), filepath.Join(dir, folder+".old")); err != nil {
			t.Fatal(err)
		}
		await("a removed folder " + folder)
		write(t, file, simple)
		await("a folder that came again, " + folder)
		write(t, file, simple+"\n")
		await("a changed file in a folder that came again, " + folder)
	}
}
