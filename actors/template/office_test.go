package template

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOffice reads a document that LibreOffice wrote: it splits runs, numbers its
// parts and wraps text boxes in its own way.
func TestOffice(t *testing.T) {
	office := findOffice(t)
	file := convert(t, office, t.TempDir())
	want := []Param{
		{Name: "birthday", Type: "date", Default: "2000-01-01"},
		{Name: "box", Type: "t", Default: "once"},
		{Name: "cell 2"},
		{Name: "comment"},
		{Name: "endnote"},
		{Name: "footer", Default: "page 1"},
		{Name: "footnote", Type: "integer", Default: "1"},
		{Name: "header", Type: "text"},
		{Name: "heading"},
		{Name: "hidden", Type: "textarea:3"},
		{Name: "inserted"},
		{Name: "linked ${text}", Type: "choice(A,B)"},
		{Name: "name"},
		{Name: "second header"},
		{Name: "shape"},
		{Name: "tabbed", Default: "a\tb\nc   d"},
		{Name: "text"},
		{Name: "uml\u00e4ut \u6f22\u5b57 \U0001f600", Default: "\u201e\u201c & <b> # } \\"},
	}
	got, err := Parameters(Document, bytes.NewReader(file), int64(len(file)), Limits{})
	assert.True(t, err == nil && slices.Equal(got, want), "got  %q, %v\nwant %q", got, err, want)
}

// TestOfficePassword holds gateway/INTERFACE.md, "What is not a template", for a
// document that LibreOffice encrypted with a password, and for one in its old format.
func TestOfficePassword(t *testing.T) {
	office := findOffice(t)
	python := ""
	for _, p := range []string{"/usr/bin/python3", "python3"} { // Debian's own knows LibreOffice
		if exec.CommandContext(t.Context(), p, "-c", "import uno").Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		t.Skip("python3 cannot talk to LibreOffice (Debian: python3-uno)")
	}
	dir := t.TempDir()
	source, err := filepath.Abs(filepath.Join("testdata", "office.fodt"))
	require.NoError(t, err)
	locked, old := filepath.Join(dir, "locked.docx"), filepath.Join(dir, "old.doc")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	pipe := "troupe-test-" + strconv.Itoa(os.Getpid())
	listening := exec.CommandContext(ctx, office, "-env:UserInstallation=file://"+dir+"/profile", "--headless", "--norestore", "--accept=pipe,name="+pipe+";urp;")
	listening.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // soffice is a script in front of the program
	require.NoError(t, listening.Start())
	end := time.AfterFunc(2*time.Minute, func() { _ = syscall.Kill(-listening.Process.Pid, syscall.SIGKILL) })
	defer end.Stop()
	defer func() { _ = listening.Wait() }() // lock.py ends it
	if output, err := exec.CommandContext(ctx, python, filepath.Join("testdata", "lock.py"), pipe, "file://"+source, "file://"+locked, "file://"+old).CombinedOutput(); err != nil {
		// NB: Python's bridge to LibreOffice may crash when that ends; the document has been written by then, or the next step fails.
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == -1 {
			t.Logf("lock.py: %v\n%s", err, output)
		} else {
			t.Fatalf("lock.py: %v\n%s", err, output)
		}
	}
	for name, want := range map[string]error{locked: ErrEncrypted, old: ErrNotTemplate} {
		file, err := os.ReadFile(name)
		require.NoError(t, err)
		got, err := Parameters(Document, bytes.NewReader(file), int64(len(file)), Limits{})
		assert.ErrorIs(t, err, want, "%s: got %q", name, got)
		assert.True(t, name == locked || strings.Contains(err.Error(), "a compound file"), err)
	}
}

func findOffice(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it waits for LibreOffice")
	}
	office, err := exec.LookPath("soffice")
	if err != nil {
		t.Skip("soffice is not installed (Debian: libreoffice-writer-nogui)")
	}
	return office
}

func convert(t *testing.T, office, dir string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, office, "-env:UserInstallation=file://"+filepath.ToSlash(dir)+"/profile", "--headless",
		"--convert-to", "docx:MS Word 2007 XML", "--outdir", dir, filepath.Join("testdata", "office.fodt"))
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("soffice: %v\n%s", err, output)
	}
	file, err := os.ReadFile(filepath.Join(dir, "office.docx"))
	require.NoError(t, err)
	return file
}
