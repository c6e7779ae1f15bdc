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

func rights(t testing.TB, text string) *Rights {
	t.Helper()
	r, err := ParseRights("rights.yaml", []byte(text), directory(t))
	require.NoError(t, err)
	return r
}

// readersOf names those of the directory who read a path.
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

// TestRights holds cmd/troupe/HOME.md, "rights.yaml", and gateway/INTERFACE.md,
// "Who may read a file".
func TestRights(t *testing.T) {
	const sales = "- path: /Sales\n  readers: [role:manager, user:john.doe]\n  writers: [user:jane.roe]\n- path: /Shared\n  readers: [\"*\"]\n"
	const all = "john.doe jane.roe mary root"
	for _, c := range []struct{ rule, rights, path, want string }{
		{"without an entry nobody reads /", "", "/a.rml", "root"},
		{"without an entry nobody reads a folder", "", "/a/b/c.rml", "root"},
		{"without an entry everyone reads /Temp", "", "/Temp/a/b.rml", all},
		{"without an entry everyone reads files in /User", "", "/User/a.rml", all},
		{"without an entry a user's folder is the user's", "", "/User/mary/a/b.rml", "mary root"},
		{"a folder in /User that is no user's is nobody's", "", "/User/someone/a.rml", "root"},
		{"the folder of a disabled user is nobody's", "", "/User/gone/a.rml", "root"},
		{"a file that is called like a user is the user's", "", "/User/mary", "mary root"},
		{"names are as written: /user", "", "/user/mary/a.rml", "root"},
		{"names are as written: /temp", "", "/temp/a.rml", "root"},
		{"/Temp is at the top only", "", "/a/Temp/b.rml", "root"},
		{"/User is at the top only", "", "/a/User/mary/b.rml", "root"},
		{"a name that only begins like it", "", "/Temporary/b.rml", "root"},

		{"a role and a user are named", sales, "/Sales/a.rml", "john.doe mary root"},
		{"an entry holds below its folder", sales, "/Sales/2026/q1/a.rml", "john.doe mary root"},
		{"an entry holds for a file of its name", sales, "/Sales", "john.doe mary root"},
		{"an entry does not hold beside", sales, "/Sales2/a.rml", "root"},
		{"writers are no readers", sales, "/Sales/b.rml", "john.doe mary root"},
		{"everyone", sales, "/Shared/a.rml", all},

		{"the nearest entry decides alone", "- {path: /a, readers: [user:mary]}\n- {path: /a/b, readers: [user:john.doe]}\n", "/a/b/c.rml", "john.doe root"},
		{"the nearest entry does not reach up", "- {path: /a, readers: [user:mary]}\n- {path: /a/b, readers: [user:john.doe]}\n", "/a/c.rml", "mary root"},
		{"the order of entries does not matter", "- {path: /a/b, readers: [user:john.doe]}\n- {path: /a, readers: [user:mary]}\n", "/a/b/c.rml", "john.doe root"},
		{"a nearer entry can close", "- {path: /a, readers: ['*']}\n- {path: /a/b, readers: []}\n", "/a/b/c.rml", "root"},
		{"a nearer entry can close without readers", "- {path: /a, readers: ['*']}\n- {path: /a/b, writers: [user:mary]}\n", "/a/b/c.rml", "root"},
		{"an entry of a file", "- {path: /a, readers: ['*']}\n- {path: /a/secret.rml, readers: [user:mary]}\n", "/a/secret.rml", "mary root"},
		{"an entry of a file leaves its neighbours", "- {path: /a, readers: ['*']}\n- {path: /a/secret.rml, readers: [user:mary]}\n", "/a/b.rml", all},
		{"an entry between has none of its own", "- {path: /a/b/c, readers: ['*']}\n", "/a/b/d.rml", "root"},

		{"an entry for /", "- {path: /, readers: ['*']}\n", "/a/b.rml", all},
		{"an entry for / leaves /Temp as it is", "- {path: /, readers: []}\n", "/Temp/a.rml", all},
		{"an entry for / leaves users' folders as they are", "- {path: /, readers: ['*']}\n", "/User/mary/a.rml", "mary root"},
		{"an entry for /Temp replaces everyone", "- {path: /Temp, readers: [user:mary]}\n", "/Temp/a.rml", "mary root"},
		{"an entry for /User holds for files in it", "- {path: /User, readers: [user:mary]}\n", "/User/a.rml", "mary root"},
		{"an entry for /User leaves users' folders as they are", "- {path: /User, readers: [user:mary]}\n", "/User/john.doe/a.rml", "john.doe root"},
		{"an entry for a user's folder replaces the user", "- {path: /User/john.doe, readers: [role:manager]}\n", "/User/john.doe/a.rml", "mary root"},
		{"an entry below a user's folder", "- {path: /User/john.doe/out, readers: ['*']}\n", "/User/john.doe/out/a.rml", all},
		{"one reader needs no list", "- {path: /a, readers: user:mary}\n", "/a/b.rml", "mary root"},
		{"a name that looks like a subject is a path", "- {path: '/user:mary', readers: [user:mary]}\n", "/user:mary/a", "mary root"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			assert.Equal(t, c.want, readersOf(t, rights(t, c.rights), c.path), "readers of %s", c.path)
		})
	}
	t.Run("the zero value is as an empty file", func(t *testing.T) {
		for _, p := range []string{"/a", "/Temp/a", "/User/mary/a", "/User/a"} {
			assert.Equal(t, readersOf(t, rights(t, ""), p), readersOf(t, &Rights{}, p), "readers of %s", p)
		}
	})
	t.Run("closed rights leave only administrators", func(t *testing.T) {
		for _, p := range []string{"/a", "/Temp/a", "/User/mary/a"} {
			assert.Equal(t, "root", readersOf(t, Closed(), p), "readers of %s", p)
		}
	})
}

// TestParseRightsFaults holds that everything wrong is named, with its place.
func TestParseRightsFaults(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{"no YAML", "- [\n", "rights.yaml:2:1: "},
		{"no list", "path: /a\n", "rights.yaml:1:1: expected a list of entries, found a mapping"},
		{"an entry that is none", "- /a\n", "rights.yaml:1:3: expected a mapping, found a text"},
		{"an unknown key", "- {path: /a, reader: []}\n", `rights.yaml:1:14: unknown key "reader" (did you mean "readers"?)`},
		{"no path", "- readers: []\n", "rights.yaml:1:3: the entry has no path"},
		{"neither readers nor writers", "- path: /a\n", "rights.yaml:1:3: the entry names neither readers nor writers (readers: [] is nobody)"},
		{"a path that is no text", "- {path: 1, readers: []}\n", "rights.yaml:1:10: expected a text, found a number (quote it)"},
		{"a slash at the end", "- {path: /a/, readers: []}\n", `rights.yaml:1:10: "/a/" is not a path of the repository (did you mean "/a"?)`},
		{"no slash in front", "- {path: a/b, readers: []}\n", `rights.yaml:1:10: "a/b" is not a path of the repository (did you mean "/a/b"?)`},
		{"dots", "- {path: /a/../b, readers: []}\n", `rights.yaml:1:10: "/a/../b" is not a path of the repository (did you mean "/b"?)`},
		{"an empty path", "- {path: '', readers: []}\n", `rights.yaml:1:10: "" is not a path of the repository (it begins`},
		{"a control character", "- {path: \"/a\\n\", readers: []}\n", `rights.yaml:1:10: "/a\n" is not a path of the repository (it begins`},
		{"a path too deep", "- {path: '" + strings.Repeat("/a", rightsFolderMax+1) + "', readers: []}\n", "is deeper than"},
		{"a path twice", "- {path: /a, readers: []}\n- {path: /a, writers: []}\n", `rights.yaml:2:10: line 1 has an entry for "/a" as well`},
		{"an unknown role", "- {path: /a, readers: [role:manger]}\n", `rights.yaml:1:24: unknown role "manger" (did you mean "role:manager"?)`},
		{"an unknown user", "- {path: /a, readers: [user:john.do]}\n", `rights.yaml:1:24: unknown user "john.do" (did you mean "user:john.doe"?)`},
		{"an unknown writer", "- {path: /a, writers: [user:nobody.at.all]}\n", `rights.yaml:1:24: unknown user "nobody.at.all"`},
		{"a role without its prefix", "- {path: /a, readers: [manager]}\n", `rights.yaml:1:24: "manager" is neither a role nor a user (did you mean "role:manager"?)`},
		{"a user without its prefix", "- {path: /a, readers: [mary]}\n", `rights.yaml:1:24: "mary" is neither a role nor a user (did you mean "user:mary"?)`},
		{"nobody's name", "- {path: /a, readers: [x]}\n", `rights.yaml:1:24: "x" is neither a role nor a user ("*", role:ID or user:ID)`},
		{"a reader twice", "- {path: /a, readers: [user:mary, '*', user:mary]}\n", `rights.yaml:1:40: "user:mary" is there twice`},
		{"a reader that is no text", "- {path: /a, readers: [1]}\n", "rights.yaml:1:24: expected a text, found a number (quote it)"},
		{"readers that are no list", "- {path: /a, readers: {a: b}}\n", "rights.yaml:1:23: expected a list, found a mapping"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r, err := ParseRights("rights.yaml", []byte(c.text), directory(t))
			var faults document.Faults
			assert.True(t, errors.As(err, &faults) && len(faults) == 1 && strings.Contains(err.Error(), c.want), "got %v, want one fault %q", err, c.want)
			assert.Nil(t, r, "there are rights in spite of faults")
		})
	}
	t.Run("all faults at once", func(t *testing.T) {
		_, err := ParseRights("rights.yaml", []byte("- {path: a, readers: [x]}\n- {path: /b, readers: [role:x, user:y]}\n"), directory(t))
		var faults document.Faults
		assert.True(t, errors.As(err, &faults) && len(faults) == 4, "got %v, want four faults", err)
	})
	t.Run("without a directory nobody is unknown", func(t *testing.T) {
		_, err := ParseRights("rights.yaml", []byte("- {path: /b, readers: [role:x, user:y]}\n"), nil)
		assert.NoError(t, err)
	})
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
