package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

func homeIn(t *testing.T, dir, definitions string) *Known {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "identity.yaml"))
	require.NoError(t, err)
	directory, err := identity.ParseDirectory("identity.yaml", text)
	require.NoError(t, err)
	parser, err := statemachine.NewParser(statemachine.ParserOptions{HasZone: func(string) bool { return true }})
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, definitions))
	require.NoError(t, err)
	var all []*statemachine.Definition
	for _, name := range files {
		if filepath.Base(name) == "identity.yaml" {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		parsed, err := parser.Parse(statemachine.Source{File: name, Text: text})
		require.NoError(t, err)
		all = append(all, parsed.Definition)
	}
	return NewKnown(directory, all)
}

// recordedFrom is the history of the instance that a test has created last; nil when it has created none.
func recordedFrom(t *testing.T, known *Known, test *Test) *Recorded {
	t.Helper()
	r := &run{world: known.World(test.Now.Add(123*time.Millisecond), false), workflow: test.Workflow, known: known}
	for i := range test.Steps {
		require.Nil(t, r.step(&test.Steps[i]), "%s: step %d", test.Name, i+1)
	}
	if r.of == nil {
		return nil
	}
	of := &Recorded{Workflow: test.Workflow, Name: "recorded", Public: r.of.State().Public, Private: r.of.State().Private, WithPrivate: true}
	for _, e := range r.of.History() {
		of.Entries = append(of.Entries, RecordedStep{e.User, e.Event, e.End, e.At, e.Data})
	}
	return of
}

// TestWhatHappenedCanBeRecorded plays the tests of the example home and of testdata, and records what has happened there: the recorded
// test goes the same way.
func TestWhatHappenedCanBeRecorded(t *testing.T) {
	const example = "../../../cmd/troupe/example"
	office := homeIn(t, "testdata/home", "*.yaml")
	var recorded int
	again := func(known *Known, name string, text []byte) {
		file, err := Parse(name, text, known)
		require.NoError(t, err)
		for _, test := range file.Tests {
			of := recordedFrom(t, known, test)
			if of == nil {
				continue
			}
			made, err := Record(known, of)
			require.NoError(t, err, test.Name)
			file, err := Parse("recorded.yaml", made, known)
			require.NoError(t, err)
			got := recordedFrom(t, known, file.Tests[0])
			assert.Len(t, got.Entries, len(of.Entries), "%s\n%s", test.Name, made)
			assert.True(t, data.Equal(of.Public, got.Public), "%s: got %s, want %s\n%s", test.Name, got.Public, of.Public, made)
			recorded++
		}
	}
	files, err := filepath.Glob(example + "/tests/*.yaml")
	require.NoError(t, err)
	known := homeIn(t, example, "workflows/*.yaml")
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		again(known, name, text)
	}
	text, err := os.ReadFile("testdata/scripts/run.txt")
	require.NoError(t, err)
	_, text2, _ := strings.Cut(string(text), "\nfile\n")
	text2, _, _ = strings.Cut(text2, "----")
	again(office, "run.yaml", []byte(text2))
	assert.Greater(t, recorded, 20)
}

// TestPrivateDataIsMasked unless it is wanted.
func TestPrivateDataIsMasked(t *testing.T) {
	known := homeIn(t, "testdata/home", "*.yaml")
	file, err := Parse("t.yaml", []byte(`
workflow: trip
tests: {a: {steps: [{as: ann, create: {}}, {as: ann, send: ask, data: {days: 4}}, {advance: P3D}, {as: ann, send: tell, data: {pin: 'the code', tries: 3}}]}}
`), known)
	require.NoError(t, err)
	of := recordedFrom(t, known, file.Tests[0])
	made, err := Record(known, of)
	require.NoError(t, err)
	assert.Contains(t, string(made), "the code")
	of.WithPrivate = false
	made, err = Record(known, of)
	require.NoError(t, err)
	assert.NotContains(t, string(made), "the code")
	assert.Contains(t, string(made), "xxxxxxxx")
	assert.Contains(t, string(made), "days: 4", "what is not private stays")

	of.Entries[3].End = []statemachine.NodeID{"ready"}
	_, err = Record(known, of)
	assert.ErrorContains(t, err, "entry 4: the instance went by \"tell\" to ready, but the simulated one by \"tell\" to late")
	of.Entries[2].User = "carl"
	_, err = Record(known, of)
	assert.Error(t, err)
	of.Entries[3].Event = statemachine.ResetEvent
	_, err = Record(known, of)
	assert.EqualError(t, err, "entry 4 is a reset, which no step of a test can do")
}
