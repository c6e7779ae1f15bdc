package home

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheSchemasOfAHomeFollowTheProgram(t *testing.T) {
	dir := t.TempDir()
	if err := RefreshSchemas(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, SchemasFolder)); !os.IsNotExist(err) {
		t.Errorf("a home without schemas got some: %v", err)
	}
	if err := WriteSchemas(dir); err != nil {
		t.Fatal(err)
	}
	put := func(s Schema, text string) {
		t.Helper()
		if err := os.WriteFile(s.copyIn(dir), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := Schemas()
	old, foreign, gone := all[0], all[1], all[2]
	put(old, strings.Replace(old.Text, "A workflow", "An old workflow", 1))
	put(foreign, `{"$id": "https://example.org/my-form"}`)
	if err := os.Remove(gone.copyIn(dir)); err != nil {
		t.Fatal(err)
	}
	if err := RefreshSchemas(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		schema     Schema
		what, want string
	}{
		{old, "an old copy", old.Text},
		{foreign, "a file of somebody else", `{"$id": "https://example.org/my-form"}`},
		{gone, "one that was removed", ""},
		{all[3], "a copy", all[3].Text},
	} {
		if text, _ := os.ReadFile(c.schema.copyIn(dir)); string(text) != c.want {
			t.Errorf("%s: got %.80s, want %.80s", c.what, text, c.want)
		}
	}
	if err := os.Remove(old.copyIn(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(old.copyIn(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := RefreshSchemas(dir); err == nil {
		t.Error("a copy that cannot be read: got no error")
	}
}

// TestSchemasAreNoPartOfAHome: loading, packing and watching pass over them.
func TestSchemasAreNoPartOfAHome(t *testing.T) {
	w := &Watcher{o: WatchOptions{Dir: "/home"}}
	if access, matters := w.matters("/home/" + SchemasFolder + "/" + Schemas()[0].File()); access || matters {
		t.Error("a change of a schema has the home read again")
	}
	if isSource(Schemas()[0].File()) {
		t.Error("a schema is taken for a definition")
	}
}
