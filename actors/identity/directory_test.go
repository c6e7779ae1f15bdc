package identity

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/document"
)

func TestParseDirectory(t *testing.T) {
	d := parse(t, staff)
	if got, want := d.RoleIDs(), []RoleID{"clerk", "boss"}; !reflect.DeepEqual(got, want) {
		t.Errorf("RoleIDs: got %v, want %v", got, want)
	}
	if !d.HasRole("boss") || d.HasRole("Boss") {
		t.Errorf("HasRole: got %v and %v, want true and false", d.HasRole("boss"), d.HasRole("Boss"))
	}
	want := &Principal{
		ID: "mary.major", Name: "Mary Major", Roles: []string{"boss", "clerk"},
		Privileges: []string{"mod-admin", "mod-form", "mod-form-portal", "mod-workflows"},
	}
	assert.Equal(t, want, d.Principal("mary.major"), "Principal")
	for _, id := range []UserID{"gone.girl", "nobody", "", "Mary.Major"} {
		assert.Nil(t, d.Principal(id), "Principal(%q)", id)
	}
	got := d.Users()
	assert.True(t, len(got) == 3 && got[2].Disabled, "Users: got %+v, want three, the last one disabled", got)
	for _, src := range []string{"", "# nothing yet\n", "roles: []\nusers: []\n", "roles:\nusers:\n"} {
		d := parse(t, src)
		assert.True(t, len(d.Users()) == 0 && len(d.Roles()) == 0, "%q: got %+v, want nothing", src, d)
	}
	d, err := ParseDirectory("identity.json", []byte(`{"users": [{"id": "a", "privileges": ["mod-form"]}]}`))
	assert.True(t, err == nil && d.Principal("a").Has(Form) && d.Principal("a").Name == "a", "got %+v, %v, want user a, named a, with mod-form", d, err)
}

func TestParseDirectoryFaults(t *testing.T) {
	tests := []struct {
		name, src string
		want      []string // each a part of one fault, in order
	}{
		{"a list at the top", "- a\n", []string{"identity.yaml:1:1: "}},
		{"an unknown key", "role: []\n", []string{`roles`}},
		{"an unknown key of a role", "roles: [{id: a, privilege: []}]\n", []string{"privileges"}},
		{"an unknown key of a user", "users: [{id: a, role: []}]\n", []string{"roles"}},
		{"an unknown privilege", "roles:\n  - id: a\n    privileges: [mod-from]\n", []string{"identity.yaml:3:18: "}},
		{"a close privilege is suggested", "roles: [{id: a, privileges: [mod-checklists]}]\n", []string{"mod-checklist"}},
		{"an unknown role", "roles: [{id: clerk}]\nusers: [{id: a, roles: [clark]}]\n", []string{"clerk"}},
		{"a role twice", "roles: [{id: a}, {id: a}]\n", []string{`role "a" is there twice`}},
		{"a user twice", "users: [{id: a}, {id: a}]\n", []string{`user "a" is there twice`}},
		{"a user without id", "users: [{name: a}]\n", []string{"the user has no id"}},
		{"a role with a blank", "roles: [{id: a b}]\n", []string{"cannot be the id of a role"}},
		{"a user with a slash", "users: [{id: a/b}]\n", []string{"cannot be the id of a user"}},
		{"the name of the service itself", "users: [{id: system}]\n", []string{`"system" is reserved`}},
		{"a text for a list", "users: john\n", []string{"must be a list"}},
		{"a text for a user", "users: [john]\n", []string{"identity.yaml:1:9: "}},
		{"a number for a name", "users: [{id: a, name: 7}]\n", []string{"identity.yaml:1:23: "}},
		{"a text for disabled", "users: [{id: a, disabled: maybe}]\n", []string{"identity.yaml:1:27: "}},
		{"a name that is too long", "roles: [{id: a, name: " + strings.Repeat("ä", 201) + "}]\nusers: [{id: a, name: " + strings.Repeat("x", 201) + "}, {id: b, name: " + strings.Repeat("ä", 200) + "}]\n", []string{"identity.yaml:1:23: the name has more than 200 characters", "identity.yaml:2:23: the name has more than 200"}},
		{"an address that is too long", "users: [{id: a, email: " + strings.Repeat("x", 64) + "@" + strings.Repeat("x", 190) + "}, {id: b, email: " + strings.Repeat("x", 64) + "@" + strings.Repeat("x", 189) + "}]\n", []string{"identity.yaml:1:24: "}},
		{"all faults at once", "roles: [{id: a b}]\nusers:\n  - {id: c, roles: [d]}\n  - {id: c}\n", []string{":1:", ":3:", ":4:"}},
		{"broken YAML", "users: [", []string{"identity.yaml:"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, err := ParseDirectory("identity.yaml", []byte(test.src))
			var faults document.Faults
			require.True(t, d == nil && errors.As(err, &faults), "got %+v, %v, want faults", d, err)
			require.Len(t, faults, len(test.want), err)
			for i, want := range test.want {
				assert.Contains(t, faults[i].Error(), want, "fault %d", i)
			}
		})
	}
}

// FuzzParseDirectory checks that no text makes ParseDirectory panic, and that a
// directory that it accepts is whole.
func FuzzParseDirectory(f *testing.F) {
	f.Add([]byte(staff))
	f.Add([]byte("users: [{id: a, roles: [b], privileges: [c]}]"))
	f.Add([]byte("roles: &r [{id: a}]\nusers: *r\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := ParseDirectory("identity.yaml", src)
		if err != nil {
			require.Nil(t, d, "got a directory beside %v", err)
			return
		}
		for _, u := range d.Users() {
			p := d.Principal(u.ID)
			require.Equal(t, u.Disabled, p == nil, "user %q: got principal %+v, disabled", u.ID, p)
			for _, role := range u.Roles {
				require.True(t, d.HasRole(role), "user %q has the role %q, which does not exist", u.ID, role)
			}
		}
	})
}
