package home

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/form"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

const (
	survey = "id: survey\naccess: {roles: [clerk]}\nworkflows: [simple]\nsubmit: go\nschema: {type: object, properties: {a: {$ref: a.schema.json}}}\n"
	tidy   = "id: tidy\naccess: {roles: [clerk]}\nitems: [{id: desk, required: true}]\n"
)

func TestLoadReadsTemplates(t *testing.T) {
	dir := folder(t, map[string]string{
		"identity.yaml": people, "workflows/simple.yaml": simple, "workflows/simple.schema.json": shape,
		"forms/survey.yaml": survey, "forms/a.schema.json": `{"type": "string"}`, "forms/.hidden.yaml": "nonsense", "forms/readme.txt": "nonsense",
		"checklists/tidy.json": `{"id": "tidy", "access": {"roles": ["clerk"]}, "items": [{"id": "desk", "required": true}]}`,
	})
	changed := time.Date(2026, 2, 3, 4, 5, 6, 789_654_321, time.UTC)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "forms", "survey.yaml"), changed, changed))
	set, err := Load(os.DirFS(dir), parser(t))
	require.NoError(t, err)
	require.Len(t, set.Templates, 2)
	questions, tidy := set.Templates[0], set.Templates[1]
	if questions.File != "forms/survey.yaml" || questions.Parsed.Kind != form.KindForm || tidy.File != "checklists/tidy.json" || tidy.Parsed.Kind != form.KindChecklist {
		t.Errorf("got %s and %s", questions.File, tidy.File)
	}
	got := string(questions.Refs["a.schema.json"])
	assert.True(t, got == `{"type": "string"}` && string(questions.Text) == survey, "what is kept: got %q and %q", got, questions.Text)
	want := changed.Truncate(time.Millisecond)
	assert.True(t, questions.Parsed.Modified.Equal(want), "modified: got %v, want %v", questions.Parsed.Modified, want)
	assert.Error(t, questions.Parsed.Check(data.Value(`{"a":1}`)), "the file that the schema refers to is not looked at")
}

// TestUnknownWorkflowBesideFaultyOne: a form that names no workflow is told in the same round as the faults of a workflow, whose
// id is known all the same, unless its file is so wrong that it cannot be told.
func TestUnknownWorkflowBesideFaultyOne(t *testing.T) {
	const unknown = `forms/survey.yaml:3:13: unknown workflow`
	for _, c := range []struct {
		named, faulty string
		want          bool
	}{
		{"smple", "id: other\nversion: none\n", true},
		{"other", "id: other\nversion: none\n", false},
		{"smple", "version: none\n", false},
		{"smple", "id: [other\n", false},
	} {
		_, err := Load(os.DirFS(folder(t, map[string]string{
			"identity.yaml": people, "workflows/simple.yaml": simple, "workflows/simple.schema.json": shape, "workflows/other.yaml": c.faulty,
			"forms/survey.yaml": strings.Replace(survey, "[simple]", "["+c.named+"]", 1), "forms/a.schema.json": shape,
		})), parser(t))
		assert.True(t, err != nil && strings.Contains(err.Error(), "workflows/other.yaml:") && strings.Contains(err.Error(), unknown) == c.want,
			"%s beside %q: got %v; that it is unknown is told: %v", c.named, c.faulty, err, c.want)
	}
}

// TestUnknownRoleBesideFaultyPeople: roles are held against identity.yaml also when it has faults, unless one of its roles cannot be told.
func TestUnknownRoleBesideFaultyPeople(t *testing.T) {
	for _, c := range []struct {
		people, role string
		want         bool
	}{
		{strings.Replace(people, "mod-form", "mod-frm", 1), "clark", true},
		{strings.Replace(people, "mod-form", "mod-frm", 1), "clerk", false},
		{strings.Replace(people, "id: clerk", "id: 7", 1), "clark", false},
		{"roles: 7\n", "clark", false},
		{"roles: [\n", "clark", false},
	} {
		_, err := Load(os.DirFS(folder(t, map[string]string{
			"identity.yaml": c.people, "workflows/simple.yaml": strings.Replace(simple, "clerk", c.role, 1), "workflows/simple.schema.json": shape,
		})), parser(t))
		assert.True(t, err != nil && strings.Contains(err.Error(), "identity.yaml:") && strings.Contains(err.Error(), "workflows/simple.yaml:2:") == c.want,
			"%s beside %q: got %v; that it is unknown is told: %v", c.role, c.people, err, c.want)
	}
}

func TestLoadReportsTheFaultsOfAllFilesTogether(t *testing.T) {
	dir := folder(t, map[string]string{
		"identity.yaml": people, "workflows/simple.yaml": simple, "workflows/simple.schema.json": shape,
		"workflows/wrong.yaml": strings.Replace(simple, "id: simple", "id: 'a b'", 1),
		"forms/a.yaml":         strings.Replace(survey, "submit: go", "submit: goo", 1), "forms/a.schema.json": shape,
		"forms/b.yaml":           strings.Replace(strings.Replace(survey, "clerk", "clark", 1), "survey", "b", 1),
		"forms/c.yaml":           strings.Replace(survey, "workflows: [simple]\nsubmit: go\n", "", 1),
		"forms/d.json":           `{"id": "survey", "access": {"roles": "clerk"}, "schema": {"type": "object"}}`,
		"forms/large.yaml":       tidy + strings.Repeat("# \n", MaxFileBytes/3),
		"checklists/tidy.yaml":   tidy,
		"checklists/tidier.yaml": tidy,
		"checklists/survey.yaml": strings.Replace(tidy, "tidy", "survey", 1),
		"checklists/wrong.yaml":  "id: wrong\naccess: {roles: [clerk]}\n",
	})
	if err := syscall.Mkfifo(filepath.Join(dir, "forms", "pipe.yaml"), 0o600); err != nil {
		t.Skipf("no pipe: %v", err)
	}
	_, err := Load(os.DirFS(dir), parser(t))
	var faults document.Faults
	require.ErrorAs(t, err, &faults)
	wants := []string{
		"workflows/wrong.yaml:1:",
		`forms/a.yaml:4:9: workflow "simple" declares no event "goo" (did you mean "go"?)`,
		`forms/b.yaml:2:18: unknown role "clark" (did you mean "clerk"?)`,
		"forms/d.json:1:1: form survey is also in forms/c.yaml",
		"forms/large.yaml:1: large.yaml is larger than 1048576 bytes",
		"forms/pipe.yaml:1: pipe.yaml is not a regular file",
		"checklists/tidy.yaml:1:1: checklist tidy is also in checklists/tidier.yaml",
		"checklists/wrong.yaml:1:1: the checklist has no items",
	}
	for _, want := range wants {
		assert.Contains(t, err.Error(), want, "faults")
	}
	assert.Len(t, faults, len(wants), err)
}

// TestATemplateMayNameTheWorkflowsOfItsSet looks at what counts as known.
func TestATemplateMayNameTheWorkflowsOfItsSet(t *testing.T) {
	two := strings.Replace(strings.Replace(simple, "id: simple\n", "id: simple\nversion: 2\n", 1), "go: b", "jump: b", 1)
	for _, test := range []struct {
		name, workflow, form string
		want                 string // the fault of the form; empty: none
	}{
		{"the workflow is there", simple, survey, ""},
		{"it is not", strings.Replace(simple, "id: simple", "id: sample", 1), survey, `forms/f.yaml:3:13: unknown workflow "simple" (did you mean "sample"?)`},
		{"it may be the one with faults", strings.Replace(simple, "go: b", "go: c", 1), survey, ""},
		{"the highest version counts", two, survey, `forms/f.yaml:4:9: workflow "simple" declares no event "go"`},
		{"the highest version has the event", two, strings.Replace(survey, "submit: go", "submit: jump", 1), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{
				"identity.yaml": people, "workflows/w.yaml": test.workflow, "workflows/simple.schema.json": shape,
				"forms/f.yaml": test.form, "forms/a.schema.json": shape,
			}
			if test.workflow == two {
				files["workflows/v.yaml"] = simple
			}
			_, err := Load(os.DirFS(folder(t, files)), parser(t))
			var got []string
			var faults document.Faults
			if errors.As(err, &faults) {
				for _, fault := range faults {
					if strings.HasPrefix(fault.File, "forms/") {
						got = append(got, fault.Error())
					}
				}
			} else if err != nil {
				t.Fatal(err)
			}
			assert.Equal(t, test.want, strings.Join(got, "\n"), "got %q", got)
		})
	}
}

// TestAFolderThatIsNoneIsAFault holds that a file in the place of a folder is a fault, so
// that a running server keeps the set that it has.
func TestAFolderThatIsNoneIsAFault(t *testing.T) {
	for _, name := range []string{"workflows", "forms", "checklists"} {
		_, err := Load(os.DirFS(folder(t, map[string]string{"identity.yaml": people, name: "text"})), parser(t))
		var faults document.Faults
		assert.True(t, errors.As(err, &faults) && len(faults) == 1 && faults[0].File == name, "%s: got %v, want one fault", name, err)
	}
}
