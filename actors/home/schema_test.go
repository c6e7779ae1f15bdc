package home

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSchemasOfAHomeFollowTheProgram(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, RefreshSchemas(dir))
	_, err := os.Stat(filepath.Join(dir, SchemasFolder))
	assert.True(t, os.IsNotExist(err), "a home without schemas got some: %v", err)
	require.NoError(t, WriteSchemas(dir))
	put := func(s Schema, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(s.copyIn(dir), []byte(text), 0o600))
	}
	all := Schemas()
	old, foreign, gone := all[0], all[1], all[2]
	put(old, strings.Replace(old.Text, "A workflow", "An old workflow", 1))
	put(foreign, `{"$id": "https://example.org/my-form"}`)
	require.NoError(t, os.Remove(gone.copyIn(dir)))
	require.NoError(t, RefreshSchemas(dir))
	for _, c := range []struct {
		schema     Schema
		what, want string
	}{
		{old, "an old copy", old.Text},
		{foreign, "a file of somebody else", `{"$id": "https://example.org/my-form"}`},
		{gone, "one that was removed", ""},
		{all[3], "a copy", all[3].Text},
	} {
		text, _ := os.ReadFile(c.schema.copyIn(dir))
		assert.Equal(t, c.want, string(text), c.what)
	}
	require.NoError(t, os.Remove(old.copyIn(dir)))
	require.NoError(t, os.Mkdir(old.copyIn(dir), 0o755))
	assert.Error(t, RefreshSchemas(dir), "a copy that cannot be read: got no error")
}

// TestSchemasAreNoPartOfAHome: loading, packing and watching pass over them.
func TestSchemasAreNoPartOfAHome(t *testing.T) {
	w := &Watcher{o: WatchOptions{Dir: "/home"}}
	access, matters := w.matters("/home/" + SchemasFolder + "/" + Schemas()[0].File())
	assert.True(t, !access && !matters, "a change of a schema has the home read again")
	assert.False(t, isSource(Schemas()[0].File()), "a schema is taken for a definition")
}
