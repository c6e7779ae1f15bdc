package identity

import (
	"strings"
	"testing"

	"troupe/statemachine/schematest"
)

func TestTheSchemaIsNeverStricterThanTheReader(t *testing.T) {
	f := schematest.New(t, FileSchema(), func(file []byte) error {
		_, err := ParseDirectory("identity.json", file)
		return err
	})
	all := []string{staff, "# nobody\n", "roles:\nusers:\n  - {id: a, roles: , email: a@example.org}\n$schema: x\n"}
	f.Takes(t, all...)
	f.IsNeverStricter(t, all...)
	slip := strings.Replace(FileSchema(), `"type": ["array", "null"]`, `"type": "array"`, 1)
	schematest.New(t, slip, func([]byte) error { return nil }).IsStricter(t, 100, all...)
	f.Sees(t,
		"role: []\n", "roles: {id: a}\n", "roles: [{}]\n", "roles: [{id: a b}]\n", "roles: [{id: a, privilege: []}]\n",
		"roles: [{id: a, privileges: [mod-forms]}]\n", "users: [{id: a, mail: x}]\n", "users: [{id: a, email: nobody}]\n", "users: [{id: a, disabled: sure}]\n", "[]",
	)
}

func TestTheSchemaHasEveryKey(t *testing.T) {
	schematest.HasKeys(t, FileSchema(), map[string][]string{"": directoryKeys, "properties/roles/items": roleKeys, "properties/users/items": userKeys})
	schematest.HasWords(t, FileSchema(), "$defs/privilege", knownPrivileges)
	schematest.Describes(t, FileSchema())
}
