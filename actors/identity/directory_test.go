package identity

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/document"
)

// TestDirectory plays testdata/directory: who is in a file, or what is wrong with it.
func TestDirectory(t *testing.T) {
	datadriven.Walk(t, "testdata/directory", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			name := "identity.yaml"
			if cmd.Cmd == "json" {
				name = "identity.json"
			}
			d, err := ParseDirectory(name, []byte(cmd.Input+"\n"))
			var faults document.Faults
			if errors.As(err, &faults) {
				require.Nil(t, d, "a directory beside %v", err)
				return err.Error() + "\n"
			}
			require.NoError(t, err)
			out := fmt.Sprintln("roles", d.RoleIDs(), len(d.Roles()))
			for _, u := range d.Users() {
				out += fmt.Sprintf("user %s %q, disabled %t: %+v\n", u.ID, u.Name, u.Disabled, d.Principal(u.ID))
			}
			return out
		})
	})
}

func TestIDsAreAsWritten(t *testing.T) {
	d := parse(t, staff)
	for _, id := range []UserID{"gone.girl", "nobody", "", "Mary.Major"} {
		assert.Nil(t, d.Principal(id), "Principal(%q)", id)
	}
	assert.True(t, d.HasRole("boss") && !d.HasRole("Boss") && d.Principal("mary.major").Has(Form))
}

func TestTextsThatAreTooLong(t *testing.T) {
	x, y := func(n int) string { return strings.Repeat("x", n) }, func(n int) string { return strings.Repeat("ä", n) }
	for text, want := range map[string]string{
		"roles: [{id: a, name: " + y(201) + "}]\nusers: [{id: a, name: " + x(201) + "}, {id: b, name: " + y(200) + "}]\n": "identity.yaml:1:23: the name has more than 200 characters\nidentity.yaml:2:23: the name has more than 200 characters",
		"users: [{id: a, email: " + x(64) + "@" + x(190) + "}, {id: b, email: " + x(64) + "@" + x(189) + "}]\n":           "identity.yaml:1:24: ",
	} {
		_, err := ParseDirectory("identity.yaml", []byte(text))
		var faults document.Faults
		require.ErrorAs(t, err, &faults)
		assert.True(t, strings.HasPrefix(err.Error(), want) && len(faults) == 1+strings.Count(want, "\n"), "got %v, want %s", err, want)
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
