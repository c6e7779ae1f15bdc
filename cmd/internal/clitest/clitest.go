// Package clitest runs command lines in tests as a user would, on homes like the example and beside a service of the
// test. A package that invokes commands says which in Program.
package clitest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/cmd/internal/cli"
	"troupe/gateway/servertest"
)

// Invoke runs one command line in this process.
func Invoke(args ...string) (code int, stdout, stderr string) { return InvokeWith("", args...) }

// InvokeWith is invoke with standard input.
func InvokeWith(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = cli.Run(Program(), args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// ExampleHome makes a home like the example.
func ExampleHome(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	if err := errors.Join(os.CopyFS(dir, Example()), home.WriteSchemas(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// SmallHome is ExampleHome without the forms of orders: its workflows can be taken away one by one.
func SmallHome(t *testing.T) string {
	t.Helper()
	dir := ExampleHome(t)
	for _, name := range []string{"order-form.yaml", "order-decision.yaml"} {
		if err := os.Remove(filepath.Join(dir, "forms", name)); err != nil {
			t.Fatal(err)
		}
	}
	Edit(t, dir, "workflows/purchase-order.yaml", "          form: order-decision\n", "")
	return dir
}

// PutFile writes a file of a folder, with the folders above it.
func PutFile(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// RemoveFile removes a file of a folder.
func RemoveFile(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// Edit replaces a part of a file.
func Edit(t *testing.T, dir, name, before, after string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || !strings.Contains(string(text), before) {
		t.Fatalf("%s has no %q (%v)", name, before, err)
	}
	PutFile(t, dir, name, strings.ReplaceAll(string(text), before, after))
}

// MustRename renames a file.
func MustRename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// MustInvoke is Invoke of what must be done; it returns what was printed.
func MustInvoke(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := Invoke(args...)
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("%v: got code %d and %q on stderr, want %d and nothing", args, code, stderr, cli.ExitDone)
	}
	return stdout
}

// Isolated makes sure that no test sees the contexts or the environment of anyone who runs it.
func Isolated(t *testing.T) {
	t.Helper()
	t.Setenv("TROUPE_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	for _, name := range []string{"TROUPE_CONTEXT", "TROUPE_ADDRESS", "TROUPE_TOKEN", "TROUPE_TOKEN_FILE", "LC_ALL", "LC_MESSAGES", "LANG"} {
		t.Setenv(name, "")
	}
}

// StartService starts a service that the commands of the test ask.
func StartService(t *testing.T) *servertest.Server {
	t.Helper()
	Isolated(t)
	s := servertest.Start(t)
	t.Setenv("TROUPE_ADDRESS", s.URL)
	t.Setenv("TROUPE_TOKEN", s.Token)
	return s
}

// StartNotice starts a service that the commands of the test ask, with a dead letter and an incident.
func StartNotice(t *testing.T) (id string) {
	t.Helper()
	Isolated(t)
	s, id := servertest.StartNotice(t)
	t.Setenv("TROUPE_ADDRESS", s.URL)
	t.Setenv("TROUPE_TOKEN", s.Token)
	return id
}

var nodeAddresses atomic.Int64

// NodeAddress is a loopback address of this process that no other test has.
func NodeAddress() string {
	pid, n := os.Getpid(), nodeAddresses.Add(1)
	return fmt.Sprintf("127.%d.%d.%d:9400", 1+pid>>8&0x7f, pid&0xff, n)
}

// Program is the command line that invoke runs: a package that has such tests says which.
var Program func() *cobra.Command

// Tree is the folder of the module.
var Tree = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	panic("there is no go.mod above the working directory")
})

// Example are the files of the example home.
func Example() fs.FS { return os.DirFS(filepath.Join(Tree(), "cmd", "troupe", "example")) }

// HomeWith makes a home that has only a troupe.yaml.
func HomeWith(t *testing.T, settings string) string {
	t.Helper()
	dir := t.TempDir()
	PutFile(t, dir, "troupe.yaml", settings)
	return dir
}
