package serve

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/home"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
	"troupe/statemachine"
)

// TestHomeIsFilledOnlyWhenEmpty, as a new disk or a new working tree is.
func TestHomeIsFilledOnlyWhenEmpty(t *testing.T) {
	for _, test := range []struct {
		name, file      string // what is in the folder
		filled, refused bool
	}{
		{"a home", "identity.yaml", false, false},
		{"something else", "notes.txt", false, true},
		{"nothing", "", true, false},
		{"a new disk", "lost+found/x", true, false},
		{"a new working tree", ".git/x", true, false},
	} {
		dir := t.TempDir()
		if test.file != "" {
			clitest.PutFile(t, dir, test.file, "")
		}
		filled, err := homedir.Ensure(dir, clitest.Example())
		assert.True(t, filled == test.filled && (err != nil) == test.refused, "%s: got %v, %v, want %v, refused %v", test.name, filled, err, test.filled, test.refused)
	}
}

// TestAHomeWhoseFillingWasCutOff, by a kill or a full disk, is filled again.
func TestAHomeWhoseFillingWasCutOff(t *testing.T) {
	dir := t.TempDir()
	example := fstest.MapFS{"a.txt": {}, "b": {Mode: fs.ModeSymlink, Data: []byte("nowhere")}}
	_, err := homedir.Ensure(dir, example)
	require.Error(t, err, "filling: got no error")
	require.FileExists(t, filepath.Join(dir, "a.txt"), "cut off")
	if filled, err := homedir.Ensure(dir, clitest.Example()); !filled || err != nil {
		t.Fatalf("got %v, %v, want it filled", filled, err)
	}
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	_, err = home.Load(os.DirFS(dir), parser)
	assert.NoError(t, err, "what it was filled")
	filled, err := homedir.Ensure(dir, clitest.Example())
	assert.True(t, !filled && err == nil, "the next time: got %v, %v, want it left alone", filled, err)
}

// together is an example while whose first file is read somebody else fills the home.
type together struct {
	fs.FS
	once *sync.Once
	fill func()
}

func (e together) Open(name string) (fs.File, error) {
	if name == "identity.yaml" {
		e.once.Do(e.fill)
	}
	return e.FS.Open(name)
}

// TestSeveralFirstStarts fill one home at once, and each goes on with it.
func TestSeveralFirstStarts(t *testing.T) {
	dir := t.TempDir()
	filled, err := homedir.Ensure(dir, together{clitest.Example(), new(sync.Once), func() {
		filled, err := homedir.Ensure(dir, clitest.Example())
		assert.True(t, filled && err == nil, "the start that is first to end: got %v, %v", filled, err)
	}})
	assert.True(t, filled && err == nil, "got %v, %v", filled, err)
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	_, err = home.Load(os.DirFS(dir), parser)
	assert.NoError(t, err)
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		assert.NotContains(t, filepath.Base(path), ".filling", "what is left")
		return err
	}))
}
