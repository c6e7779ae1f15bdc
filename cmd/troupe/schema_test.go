package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/home"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

func TestSchema(t *testing.T) {
	for _, s := range home.Schemas() {
		assert.Equal(t, s.Text, clitest.MustInvoke(t, "schema", s.Format))
	}
	assert.Equal(t, home.Schemas()[0].Text, clitest.MustInvoke(t, "schema"), "without a word")
}

// TestTheFilesOfANewHomeNameTheirSchemas in their first lines, as a path that leads from the file to the schema.
func TestTheFilesOfANewHomeNameTheirSchemas(t *testing.T) {
	dir := clitest.ExampleHome(t)
	folders := map[string]string{"workflows": "definition", "forms": "form", "checklists": "checklist", "tests": "test"}
	formats := map[string]string{"identity.yaml": "identity", "rights.yaml": "rights"}
	for folder, format := range folders {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		require.True(t, err == nil && len(entries) != 0, "%s: no files, %v", folder, err)
		for _, e := range entries {
			formats[folder+"/"+e.Name()] = format
		}
	}
	for file, format := range formats {
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		first, _, _ := bytes.Cut(text, []byte("\n"))
		name, found := strings.CutPrefix(string(first), "# yaml-language-server: $schema=")
		schema, err := os.ReadFile(filepath.Join(dir, filepath.Dir(file), filepath.FromSlash(name)))
		i := slices.IndexFunc(home.Schemas(), func(s home.Schema) bool { return s.Format == format })
		assert.True(t, found && err == nil && string(schema) == home.Schemas()[i].Text, "%v %v %v %v", file, first, format, err)
	}
}

// TestAStartRefreshesTheSchemas, before anything else of it can fail.
func TestAStartRefreshesTheSchemas(t *testing.T) {
	dir := clitest.ExampleHome(t)
	s := home.Schemas()[0]
	name := filepath.Join(home.SchemasFolder, s.File())
	clitest.PutFile(t, dir, name, strings.Replace(s.Text, "A workflow", "An old workflow", 1))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	code, _, stderr := clitest.Invoke("serve", "--home", dir, "--listen", taken.Addr().String())
	assert.Equal(t, cli.ExitFailed, code, "a start without a port: got code, %s", stderr)
	assert.Equal(t, s.Text, readDocument(t, filepath.Join(dir, name)), "after a start")
}
