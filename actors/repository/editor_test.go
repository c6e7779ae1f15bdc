package repository

import (
	"strings"
	"testing"

	"troupe/statemachine/schematest"
)

func TestTheSchemaIsNeverStricterThanTheReader(t *testing.T) {
	f := schematest.New(t, RightsSchema(), func(file []byte) error {
		_, err := ParseRights("rights.json", file, nil)
		return err
	})
	all := []string{
		"# nothing\n", "- {path: /, readers: '*'}\n- {path: /a, writers: }\n",
		"- path: /reports\n  readers: [role:manager, user:jane.roe]\n  writers: ['*', 'role:']\n- {path: /b, readers: []}\n",
	}
	f.Takes(t, all...)
	f.IsNeverStricter(t, all...)
	slip := strings.Replace(RightsSchema(), `"type": ["array", "string", "null"]`, `"type": ["array", "string"]`, 1)
	schematest.New(t, slip, func([]byte) error { return nil }).IsStricter(t, 100, all...)
	f.Sees(t, "path: /a\n", "- {readers: []}\n", "- {path: /a}\n", "- {path: a, readers: []}\n", "- {path: /a, reader: []}\n",
		"- {path: /a, readers: [manager]}\n", "- {path: /a, readers: manager}\n", "- {path: /a, readers: ['*', '*']}\n", "- {path: /a, readers: {role: a}}\n")
}

func TestTheSchemaHasEveryKey(t *testing.T) {
	schematest.HasKeys(t, RightsSchema(), map[string][]string{"items": entryKeys})
	schematest.Describes(t, RightsSchema())
}
