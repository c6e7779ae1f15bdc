package home

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/statemachine"
)

func stop(t *testing.T, w *Watcher) {
	t.Helper()
	assert.NoError(t, w.Stop(context.Background()))
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
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func parser(t *testing.T) *statemachine.Parser {
	t.Helper()
	p, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	return p
}

func TestWatchCallsBackForWhatMatters(t *testing.T) {
	dir := folder(t, map[string]string{"identity.yaml": people})
	changed := make(chan struct{}, 100)
	w, err := NewWatcher(WatchOptions{Dir: dir, Access: func() bool { return false }, Definitions: func() bool { changed <- struct{}{}; return false }, Settle: 20 * time.Millisecond, Log: zerolog.Nop()})
	require.NoError(t, err)
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
	require.NoError(t, os.Remove(filepath.Join(dir, "rights.yaml")))
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
		require.NoError(t, os.Remove(file))
		await("a removed file in " + folder)
		require.NoError(t, os.Rename(filepath.Join(dir, folder), filepath.Join(dir, folder+".old")))
		await("a removed folder " + folder)
		write(t, file, simple)
		await("a folder that came again, " + folder)
		write(t, file, simple+"\n")
		await("a changed file in a folder that came again, " + folder)
	}
}
