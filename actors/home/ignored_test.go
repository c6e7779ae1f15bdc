package home

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFilesThatAreNotReadAreWarnedOf: definitions and templates stand directly in
// their folders; what they refer to may stand below.
func TestFilesThatAreNotReadAreWarnedOf(t *testing.T) {
	schema := "id: referring\nallow: {create: {roles: [clerk]}}\nschema: {svcPublic: {$ref: schemas/shape.json}}\n" +
		"stateMachines: {m: {states: {a: {on: {go: b}}, b: {type: final}}}}\n"
	dir := folder(t, map[string]string{
		"identity.yaml":                      people,
		"workflows/referring.yaml":           schema,
		"workflows/schemas/shape.json":       shape,
		"workflows/schemas/a.schema.json":    shape,
		"workflows/schemas/readme.md":        "x",
		"workflows/.git/config.yaml":         "x",
		"workflows/old/.hidden.yaml":         "x",
		"workflows/old/leave.yaml":           simple,
		"checklists/below/deep/check.yml":    "x",
		"forms/below/unreferred.json":        shape,
		"repository/folder/definition.yaml":  simple,
		"workflows/old/another/simple2.yaml": simple,
	})
	want := map[string]bool{
		"workflows/old/leave.yaml": true, "workflows/old/another/simple2.yaml": true,
		"checklists/below/deep/check.yml": true, "forms/below/unreferred.json": true,
	}
	set, err := Load(os.DirFS(dir), parser(t))
	require.NoError(t, err)
	for _, w := range set.Warnings {
		assert.True(t, want[w.File] && w.Suggestion != "", "got the warning %v", w)
		delete(want, w.File)
	}
	assert.Empty(t, want, "got no warning about %v", want)
	assert.Len(t, set.Workflows, 1)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "forms")))
	_, err = Load(os.DirFS(dir), parser(t))
	assert.NoError(t, err, "without one of the folders")
}

// TestTheDirectoryIsReadAlone: faults of rights.yaml are none of its own.
func TestTheDirectoryIsReadAlone(t *testing.T) {
	dir := folder(t, map[string]string{"identity.yaml": people, "rights.yaml": "- {path: /, reader: [x]}\n"})
	d, err := LoadDirectory(os.DirFS(dir))
	assert.True(t, err == nil && d.HasRole("clerk"), "got %v, %v", d, err)
	_, err = LoadAccess(os.DirFS(dir))
	assert.Error(t, err, "the rights have no fault")
}

// TestAChildThatNoFileDefinesIsWarnedOf: it may be published by itself.
func TestAChildThatNoFileDefinesIsWarnedOf(t *testing.T) {
	dir := folder(t, map[string]string{
		"identity.yaml": people,
		"workflows/parent.yaml": "id: parent\nallow: {create: {roles: [clerk]}}\nstateMachines:\n  m:\n    initial: a\n    states:\n" +
			"      a: {invoke: [{workflow: parent}, {workflow: parnet}], on: {go: b}}\n      b: {type: final}\n",
	})
	set, err := Load(os.DirFS(dir), parser(t))
	require.NoError(t, err)
	assert.True(t, len(set.Warnings) == 1 && set.Warnings[0].Line == 7 && set.Warnings[0].Suggestion == `did you mean "parent"?`, "got %v", set.Warnings)
}

// TestPeopleWhoAreNotThereAreWarnedOf: they may come later, or have gone.
func TestPeopleWhoAreNotThereAreWarnedOf(t *testing.T) {
	dir := folder(t, map[string]string{
		"identity.yaml": "roles: [{id: clerk}, {id: boss}]\nusers:\n  - {id: ann, email: ann@example.org, roles: [clerk]}\n  - {id: bob, roles: [boss]}\n" +
			"  - {id: eve, email: eve@example.org, disabled: true}\n",
		"workflows/notice.yaml": `id: notice
allow: {create: {roles: [clerk]}}
schedules:
  fine: {cron: 0 7 1 * *, as: ann}
  unknown: {cron: 0 7 1 * *, as: anne}
  disabled: {cron: 0 7 1 * *, as: eve}
stateMachines:
  m:
    initial: a
    states:
      a:
        entry:
          - mail: {to: 'role:clerk', subject: s, body: b}
          - mail: {to: 'role:boss', subject: s, body: b}
          - mail: {to: ['user:ann', 'user:bob'], subject: s, body: b}
          - mail: {to: 'user:bop', subject: s, body: b}
          - mail: {to: 'user:bop', subject: s, body: b}
        on: {go: b}
      b: {type: final}
`,
	})
	set, err := Load(os.DirFS(dir), parser(t))
	require.NoError(t, err)
	var got []string
	for _, w := range set.Warnings {
		got = append(got, w.Error())
	}
	want := []string{
		`workflows/notice.yaml:14: nobody of role:boss has an email in identity.yaml: what is mailed there becomes a dead letter`,
		`workflows/notice.yaml:15: nobody of user:bob has an email in identity.yaml: what is mailed there becomes a dead letter`,
		`workflows/notice.yaml:16: there is no user "bop": what is mailed there becomes a dead letter (did you mean "bob"?)`,
		`workflows/notice.yaml:5: there is no user "anne": the schedule unknown creates nothing (did you mean "ann"?)`,
		`workflows/notice.yaml:6: the user eve is disabled: the schedule disabled creates nothing`,
	}
	assert.True(t, slices.Equal(got, want), "got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}
