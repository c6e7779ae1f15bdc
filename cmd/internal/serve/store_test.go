package serve

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
)

// TestAHomeDemandsTheStoreThatItHad with commands that open the store themselves.
func TestAHomeDemandsTheStoreThatItHad(t *testing.T) {
	home := clitest.ExampleHome(t)
	data, away := homedir.Data(home), filepath.Join(home, "away")
	create := []string{"store", "create", "--home", home}
	list := []string{"token", "list", "--home", home}
	clitest.MustInvoke(t, "token", "create", "--home", home, "--user", "john.doe", "--note", "the first")
	clitest.WantRefusal(t, create, "there is a store already", data)

	check := []string{"check", "--home", home}
	code, stdout, stderr := clitest.Invoke(check...)
	assert.True(t, code == cli.ExitDone && stdout == "", "check of the store that belongs here: got code %d, %s%s", code, stdout, stderr)
	checks := func(when, want string) {
		t.Helper()
		code, stdout, _ := clitest.Invoke(check...)
		assert.True(t, code == cli.ExitFailed && strings.Contains(stdout, homedir.StoreIDFile+": ") && strings.Contains(stdout, want), "%v %v %v", when, code, stdout)
	}
	clitest.MustRename(t, data, away)
	checks("without the store", "the store is missing")
	clitest.WantRefusal(t, list, "the store is missing", data, homedir.StoreIDFile, "troupe store create --home "+home)
	_, err := os.Stat(data)
	assert.Error(t, err, "a refused command made a store")
	clitest.MustRename(t, away, data)
	assert.Contains(t, clitest.MustInvoke(t, list...), "the first", "token list after the store came back")

	clitest.MustRename(t, data, away)
	code, stdout, stderr = clitest.Invoke(create...)
	assert.True(t, code == cli.ExitDone && stdout == "" && stderr == data+" now has an empty store\n", "store create: got code %d, %q and %q", code, stdout, stderr)
	assert.NotContains(t, clitest.MustInvoke(t, list...), "the first", "token list of an empty store")
	clitest.MustRename(t, data, data+".new")
	clitest.MustRename(t, away, data)
	clitest.WantRefusal(t, list, "this is another store", filepath.Join(home, homedir.StoreIDFile))
	checks("with the store from before", "this is another store")
	clitest.WantRefusal(t, create, "there is a store already")
	clitest.PutFile(t, home, homedir.StoreIDFile, "")
	clitest.WantRefusal(t, list, homedir.StoreIDFile+": it is empty", "remove it")
	clitest.RemoveFile(t, home, homedir.StoreIDFile)
	assert.Contains(t, clitest.MustInvoke(t, list...), "the first", "token list of the store that was taken over")
	clitest.WantRefusal(t, []string{"store", "create", "--home", filepath.Join(home, "no")}, "there is no home in")
}

// TestAPipeInPlaceOfAFile is refused: reading it would wait for its other end, and
// SIGTERM with it.
func TestAPipeInPlaceOfAFile(t *testing.T) {
	for _, name := range []string{homedir.StoreIDFile, homedir.SettingsFile} {
		home := clitest.ExampleHome(t)
		path := filepath.Join(home, name)
		err := os.Remove(path)
		require.False(t, err != nil && !errors.Is(err, fs.ErrNotExist), err)
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		for _, command := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"store", "create"}, {"token", "list"}} {
			clitest.WantRefusal(t, append(command, "--home", home), path+" is not a regular file")
		}
		code, stdout, stderr := clitest.Invoke("check", "--home", home)
		assert.True(t, code == cli.ExitFailed && strings.Contains(stdout+stderr, "is not a regular file"), "check with %s: got code %d, %s%s", name, code, stdout, stderr)
	}
	home := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(home, homedir.GitIgnoreFile), 0o600))
	assert.Error(t, ignoreStoreID(home), "a .gitignore that is a pipe: got no error")
}

// TestASocketThatWasRemoved leaves commands without an answer while the store is in
// use; they say what to do.
func TestASocketThatWasRemoved(t *testing.T) {
	dir := clitest.ExampleHome(t)
	o := mustOpenService(t, dir)
	defer o.close()
	clitest.WantRefusal(t, []string{"token", "list", "--home", dir}, "does not answer at "+homedir.AdminSocket, "restart the server")
}
