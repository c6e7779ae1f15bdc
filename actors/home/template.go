package home

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/simulation/script"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// templatesMayName says what templates may refer to: the roles and the workflows of their own set, each in its highest
// version. unread are the ids of definitions with faults; with an empty one, any other may be among them.
func templatesMayName(set *Definitions, options statemachine.ParserOptions, unread []string) formportal.Known {
	newest := map[string]*statemachine.Definition{}
	known := formportal.Known{HasRole: options.HasRole, Roles: options.Roles}
	for _, w := range set.Workflows {
		id := string(w.Parsed.ID)
		before := newest[id]
		if before == nil {
			known.Workflows = append(known.Workflows, id)
		}
		if before == nil || before.Version < w.Parsed.Version {
			newest[id] = w.Parsed
		}
	}
	known.Workflows = append(known.Workflows, slices.DeleteFunc(slices.Clone(unread), func(id string) bool { return id == "" || newest[id] != nil })...)
	known.Workflow = func(id string) (*statemachine.Definition, bool) {
		d := newest[id]
		return d, d != nil || slices.Contains(unread, id) || slices.Contains(unread, "")
	}
	return known
}

var templateFolders = []struct {
	name string
	kind form.Kind
}{
	{FormsFolder, form.KindForm},
	{ChecklistsFolder, form.KindChecklist},
}

func loadTemplates(set *Definitions, files fs.FS, known formportal.Known) (document.Faults, error) {
	var faults document.Faults
	for _, folder := range templateFolders {
		err := eachSource(files, folder.name, &faults, func(f *sourceFile) error {
			parsed, err := formportal.ParseTemplate(formportal.TemplateText{Kind: folder.kind, File: f.shown, Text: f.text, Modified: f.modified, Read: f.ref}, known)
			if parsed != nil {
				set.Warnings = append(set.Warnings, parsed.Warnings...)
			}
			if err == nil {
				set.Templates = append(set.Templates, formportal.TemplateSource{File: f.shown, Text: f.text, Refs: f.refs, Parsed: parsed})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return append(faults, formportal.CheckTemplates(set.Templates)...), nil
}

// checkTaskForms compares the forms that tasks name with those of the set. whole is false when templates have faults.
func checkTaskForms(set *Definitions, whole bool) (faults document.Faults) {
	forms := map[string]*formportal.Template{}
	of := formportal.TaskForms{Find: func(id string) *formportal.Template { return forms[id] }, Part: !whole}
	for _, t := range set.Templates {
		if t.Parsed.Kind == form.KindForm {
			forms[t.Parsed.ID] = t.Parsed
			of.IDs = append(of.IDs, t.Parsed.ID)
		}
	}
	for _, w := range set.Workflows {
		wrong, warnings := of.Check(w.File, w.Parsed)
		faults = append(faults, wrong...)
		set.Warnings = append(set.Warnings, warnings...)
	}
	return faults
}

// SchemasFolder has copies of the schemas, for editors. Nothing in it is read as a part of the home.
const SchemasFolder = "schemas"

// Schema is the JSON Schema 2020-12 of one of a home's text formats.
type Schema struct {
	Format string // the word for the format, such as "definition"
	Text   string
}

// File is the name that a copy of the schema has.
func (s Schema) File() string { return s.Format + ".schema.json" }

// Schemas returns the schemas of all formats, that of definitions first.
func Schemas() []Schema {
	return []Schema{
		{"definition", statemachine.DefinitionSchema()},
		{"form", formportal.FileSchema(form.KindForm)},
		{"checklist", formportal.FileSchema(form.KindChecklist)},
		{"identity", identity.FileSchema()},
		{"rights", repository.RightsSchema()},
		{"test", script.FileSchema()},
	}
}

// WriteSchemas writes copies of all schemas into a home.
func WriteSchemas(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, SchemasFolder), 0o755); err != nil {
		return err
	}
	for _, s := range Schemas() {
		if err := os.WriteFile(s.copyIn(dir), []byte(s.Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// RefreshSchemas brings the copies of a home up to date, so that editors know what this program takes. It makes none
// that is not there, and leaves a file of that name alone which is not a copy.
func RefreshSchemas(dir string) error {
	var failed []error
	for _, s := range Schemas() {
		text, err := os.ReadFile(s.copyIn(dir))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			failed = append(failed, err)
		case string(text) != s.Text && schemaID(text) == schemaID([]byte(s.Text)):
			failed = append(failed, os.WriteFile(s.copyIn(dir), []byte(s.Text), 0o644))
		}
	}
	return errors.Join(failed...)
}

func (s Schema) copyIn(dir string) string { return filepath.Join(dir, SchemasFolder, s.File()) }

func schemaID(text []byte) string {
	var schema struct {
		ID string `json:"$id"`
	}
	_ = json.Unmarshal(text, &schema)
	return schema.ID
}

// isSource reports whether a file can be a definition or template by its name: hidden files and JSON Schemas cannot.
func isSource(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".schema.json") {
		return false
	}
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// ignoredFiles warns of files that look like sources but stand in a folder below. referred are files that others refer
// to.
func ignoredFiles(files fs.FS, referred map[string]bool) (warnings document.Faults) {
	for _, folder := range folders {
		// NB: what cannot be read here is not read by Load either.
		_ = fs.WalkDir(files, folder, func(shown string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || shown == folder:
				return nil
			case d.IsDir() && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir
			case !d.IsDir() && path.Dir(shown) != folder && isSource(d.Name()) && !referred[shown]:
				warnings = append(warnings, document.Fault{
					File: shown, Reason: "is not read, because it stands in a folder below " + folder,
					Suggestion: "move it to " + folder,
				})
			}
			return nil
		})
	}
	return warnings
}

func (d *Definitions) references() map[string]bool {
	all := map[string]bool{}
	add := func(file string, refs map[string][]byte) {
		for ref := range refs {
			all[path.Join(path.Dir(file), ref)] = true
		}
	}
	for _, w := range d.Workflows {
		add(w.File, w.Refs)
	}
	for _, t := range d.Templates {
		add(t.File, t.Refs)
	}
	return all
}
