package repository

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/identity"
	_ "troupe/internal/fixedseed"
	"troupe/statemachine/document"
)

const people = `roles: [{id: manager}, {id: clerk}]
users:
  - {id: john.doe, roles: [clerk]}
  - {id: jane.roe}
  - {id: mary, roles: [manager, clerk]}
  - {id: root, privileges: [mod-repository-admin]}
  - {id: gone, disabled: true}
`

func directory(t testing.TB) *identity.Directory {
	t.Helper()
	d, err := identity.ParseDirectory("identity.yaml", []byte(people))
	require.NoError(t, err)
	return d
}

func readersOf(t testing.TB, r *Rights, path string) string {
	t.Helper()
	d := directory(t)
	var who []string
	for _, u := range d.Users() {
		if p := d.Principal(u.ID); p != nil && r.Reads(p, path) {
			who = append(who, string(u.ID))
		}
	}
	return strings.Join(who, " ")
}

// flat is the obvious way to decide: a list of entries, the longest one wins.
type flat map[string][]string

func (f flat) reads(caller *identity.Principal, file string) bool {
	if caller.Has(identity.RepositoryAdmin) {
		return true
	}
	for at := file; ; at = path.Dir(at) {
		readers, found := f[at]
		if parent := path.Dir(at); !found && parent == "/User" && (at != file || slices.Contains([]string{"john.doe", "jane.roe", "mary", "root", "gone"}, path.Base(at))) {
			readers, found = []string{"user:" + path.Base(at)}, true
		}
		if !found && (at == "/User" || at == "/Temp") {
			readers, found = []string{"*"}, true
		}
		if found || at == "/" {
			return slices.ContainsFunc(readers, func(r string) bool {
				role, isRole := strings.CutPrefix(r, "role:")
				return r == "*" || r == "user:"+string(caller.ID) || isRole && slices.Contains(caller.Roles, role)
			})
		}
	}
}

func TestRightsAreAsTheObviousOnes(t *testing.T) {
	d := directory(t)
	names := rapid.SampledFrom([]string{"User", "Temp", "mary", "john.doe", "a"})
	paths := rapid.Custom(func(t *rapid.T) string {
		return "/" + strings.Join(rapid.SliceOfN(names, 1, 4).Draw(t, "names"), "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		oracle, text := flat{}, ""
		for range rapid.IntRange(0, 5).Draw(t, "entries") {
			at := paths.Draw(t, "path")
			if rapid.IntRange(0, 9).Draw(t, "top") == 0 {
				at = "/"
			}
			if _, twice := oracle[at]; twice {
				continue
			}
			readers := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"*", "role:manager", "role:clerk", "user:mary", "user:john.doe", "user:jane.roe"}), 0, 3, rapid.ID).Draw(t, "readers")
			oracle[at] = readers
			text += fmt.Sprintf("- {path: %q, readers: [", at)
			for _, r := range readers {
				text += fmt.Sprintf("%q,", r)
			}
			text += "]}\n"
		}
		r, err := ParseRights("rights.yaml", []byte(text), d)
		require.NoError(t, err, text)
		file := paths.Draw(t, "file")
		for _, u := range d.Users() {
			if p := d.Principal(u.ID); p != nil {
				assert.Equal(t, oracle.reads(p, file), r.Reads(p, file), "with\n%s%s reads %s", text, u.ID, file)
			}
		}
	})
}

func FuzzParseRights(f *testing.F) {
	f.Add("- {path: /Sales, readers: [role:manager, user:john.doe], writers: ['*']}\n")
	f.Add("- path: /\n  readers: \"*\"\n- path: /User/mary\n  readers: []\n")
	f.Add("- {path: a/, reader: [x, x]}\n- 1\n")
	d := directory(f)
	admin, mary := d.Principal("root"), d.Principal("mary")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRights("rights.yaml", []byte(text), d)
		if err != nil {
			var faults document.Faults
			require.True(t, errors.As(err, &faults) && len(faults) != 0 && r == nil, "got %v and %v, want faults and no rights", err, r)
			return
		}
		for _, p := range []string{"/a", "/User/mary/a", "/User/john.doe/a", "/Sales/a/b"} {
			assert.True(t, r.Reads(admin, p), "an administrator does not read %s", p)
			_ = r.Reads(mary, p)
		}
	})
}

// TestWritersHaveNoEffect: a file that has the key is taken, and a warning says what to do instead.
func TestWritersHaveNoEffect(t *testing.T) {
	directory, err := identity.ParseDirectory("identity.yaml", []byte("users: [{id: ann}]\n"))
	require.NoError(t, err)
	rights, err := ParseRights("rights.yaml", []byte("- {path: /a, readers: ['*']}\n- {path: /b, writers: [user:ann]}\n"), directory)
	require.NoError(t, err)
	require.Len(t, rights.Warnings(), 1)
	assert.Equal(t, 2, rights.Warnings()[0].Line)
	assert.Contains(t, rights.Warnings()[0].Error(), "writers has no effect")
}
