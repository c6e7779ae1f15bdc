package home

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/statemachine"
)

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
// that is not there, and leaves a file of that name alone which is no copy.
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
