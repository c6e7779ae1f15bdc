package formportal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/actors/form"
	"troupe/statemachine/schematest"
)

func fileFormat(t *testing.T, kind form.Kind) *schematest.Format {
	t.Helper()
	return schematest.New(t, FileSchema(kind), func(file []byte) error {
		_, err := ParseTemplate(TemplateText{Kind: kind, File: "t.json", Text: file, Read: func(string) ([]byte, error) {
			return []byte(`{"type": "string"}`), nil
		}}, Known{})
		return err
	})
}

// shipped are the templates of the example home, and of homes in the field.
func shipped(t *testing.T, folder string) (texts []string) {
	t.Helper()
	for _, home := range []string{"example", "testdata/homes/*"} {
		files, err := filepath.Glob(filepath.Join("../../cmd/troupe", home, folder, "*.yaml"))
		require.True(t, err == nil && len(files) != 0, "no templates in %s, %v", home, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			texts = append(texts, string(text))
		}
	}
	return texts
}

const nobodysForm = "{id: off, enabled: false, schema: {type: object}, workflows: any, submit: go, $schema: x}"

func TestTheSchemaOfFormsIsNeverStricter(t *testing.T) {
	travel, err := os.ReadFile("testdata/travel.yaml")
	require.NoError(t, err)
	all := append(shipped(t, "forms"), leaveForm, string(travel), "# flow style\n"+nobodysForm)
	f := fileFormat(t, form.KindForm)
	f.Takes(t, all...)
	f.IsNeverStricter(t, all...)
	slip := strings.Replace(FileSchema(form.KindForm), `"description": "What it is for, for people, in one or in several languages.", "maxLength": 2000, "$ref": "#/$defs/text"`, `"type": "number"`, 1)
	schematest.New(t, slip, func([]byte) error { return nil }).IsStricter(t, 100, all...)
	f.Sees(t,
		"id: a\n", "schema: {type: object}\naccess: {roles: a}\n", "id: a\nschema: {type: object}\n", "id: a\nacces: {roles: a}\nschema: {type: object}\n",
		"id: a\naccess: {roles: []}\nschema: {type: object}\n", "id: a\naccess: {role: a}\nschema: {type: object}\n",
		"id: a b\naccess: {roles: a}\nschema: {type: object}\n", "id: a\naccess: {roles: a}\nschema: {type: array}\n",
		"id: a\naccess: {roles: a}\nschema: {type: object}\nenabled: maybe\n", "id: a\naccess: {roles: a}\nschema: {type: object}\nitems: []\n",
		"id: a\naccess: {roles: a}\nschema: {type: object}\nworkflows: [x, x]\n", "[]",
		"id: a\nname: {en: 1}\naccess: {roles: a}\nschema: {type: object}\n", "id: a\nname: {}\naccess: {roles: a}\nschema: {type: object}\n", "id: a\naccess: {roles: a}\nschema: {type: object, title: {x_y: A}}\n",
	)
}

func TestTheSchemaOfChecklistsIsNeverStricter(t *testing.T) {
	all := append(shipped(t, "checklists"), safety)
	f := fileFormat(t, form.KindChecklist)
	f.Takes(t, all...)
	f.IsNeverStricter(t, all...)
	f.Sees(t,
		"id: a\naccess: {roles: a}\n", "id: a\naccess: {roles: a}\nitems: []\n", "id: a\naccess: {roles: a}\nitems: {id: a}\n",
		"id: a\naccess: {roles: a}\nitems: [{label: a}]\n", "id: a\naccess: {roles: a}\nitems: [{id: a, required: yes}]\n",
		"id: a\naccess: {roles: a}\nitems: [{id: a, lable: A}]\n", "id: a\naccess: {roles: a}\nitems: [{id: a}]\nschema: {type: object}\n",
	)
}

func TestTheSchemasHaveEveryKey(t *testing.T) {
	without := func(keys []string) []string {
		return slices.DeleteFunc(slices.Clone(templateKeys), func(key string) bool { return slices.Contains(keys, key) })
	}
	schematest.HasKeys(t, FileSchema(form.KindForm), map[string][]string{"": without(checklistKeys), "properties/access": accessKeys})
	schematest.HasKeys(t, FileSchema(form.KindChecklist), map[string][]string{
		"": without(formKeys), "properties/access": accessKeys, "properties/items/items": itemKeys,
	})
	for _, kind := range []form.Kind{form.KindForm, form.KindChecklist} {
		schematest.Describes(t, FileSchema(kind))
	}
}
