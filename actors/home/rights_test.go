package home

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/document"
)

func TestLoadReadsRights(t *testing.T) {
	dir := folder(t, map[string]string{"identity.yaml": people, "rights.yaml": "- {path: /desk, readers: [role:clerk]}\n"})
	set, err := Load(os.DirFS(dir), parser(t))
	require.NoError(t, err)
	ann := set.Directory.Principal("ann")
	assert.True(t, set.Rights.Reads(ann, "/desk/a.rml") && !set.Rights.Reads(ann, "/a.rml") && set.Rights.Len() == 1, set.Rights.Len())
}

func TestLoadWithoutRights(t *testing.T) {
	set, err := Load(os.DirFS(folder(t, map[string]string{"identity.yaml": people})), parser(t))
	require.NoError(t, err)
	ann := set.Directory.Principal("ann")
	assert.True(t, set.Rights.Reads(ann, "/Temp/a.rml") && set.Rights.Reads(ann, "/User/ann/a.rml") && !set.Rights.Reads(ann, "/a.rml"))
}

// TestRightsAreAPartOfTheSet: roles and users are those of the same set.
func TestRightsAreAPartOfTheSet(t *testing.T) {
	for _, c := range []struct {
		name, identity, rights, want string
		rightsStay                   bool // there are rights in spite of the faults
	}{
		{"an unknown role", people, "- {path: /a, readers: [role:clark]}\n", `rights.yaml:1:24: unknown role "clark" (did you mean "role:clerk"?)`, false},
		{"an unknown user", people, "- {path: /a, readers: [user:anne]}\n", `rights.yaml:1:24: unknown user "anne" (did you mean "user:ann"?)`, false},
		{"a faulty identity.yaml makes nobody unknown", "roles: 1\n", "- {path: /a, readers: [user:anne]}\n- {path: b, readers: []}\n", `rights.yaml:2:10: "b" is not a path`, false},
		{"a file that is too large", people, "# " + strings.Repeat("x", MaxFileBytes), "rights.yaml: rights.yaml is larger than", false},
		{"a faulty workflow leaves the rights", people, "- {path: /a, readers: [role:clerk]}\n", "workflows/w.yaml:", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"identity.yaml": c.identity, "rights.yaml": c.rights}
			if c.rightsStay {
				files["workflows/w.yaml"] = "id: ["
			}
			set, err := Load(os.DirFS(folder(t, files)), parser(t))
			var faults document.Faults
			assert.True(t, errors.As(err, &faults) && strings.Contains(err.Error(), c.want), "got %v, want the fault %q", err, c.want)
			assert.Equal(t, strings.Contains(c.want, "unknown user"), strings.Contains(err.Error(), "unknown user"), "got %v", err)
			assert.Equal(t, c.rightsStay, set.Rights != nil, "got rights %v, want some", set.Rights)
		})
	}
	t.Run("a pipe in its place does not keep anybody waiting", func(t *testing.T) {
		dir := folder(t, map[string]string{"identity.yaml": people})
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "rights.yaml"), 0o600))
		_, err := Load(os.DirFS(dir), parser(t))
		assert.True(t, err != nil && strings.Contains(err.Error(), "rights.yaml is not a regular file"), "got %v, want a fault", err)
	})
}
