package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/template/templatetest"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

// TestEveryCommandHelps holds cmd/troupe/HOME.md, "Commands": every command has --help
// with an example.
func TestEveryCommandHelps(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			visit(below)
			if below.Example == "" || below.Short == "" {
				t.Errorf("%s has no example or no description", below.CommandPath())
			}
			args := append(strings.Fields(below.CommandPath())[1:], "--help")
			code, stdout, stderr := clitest.Invoke(args...)
			assert.True(t, code == cli.ExitDone && strings.Contains(stdout, below.Example) && stderr == "", "%v %v %v %v", args, code, stderr, stdout)
		}
	}
	root := newRoot()
	visit(root)
	for _, c := range root.Commands() {
		assert.NotEmpty(t, c.GroupID, "%s is in no group of main.go", c.Name())
	}
}

// TestManual holds that every command has a manual page with its example.
func TestManual(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	clitest.Invoke("man", dir)
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		require.NoError(t, err)
		example, _, _ := strings.Cut(strings.TrimSpace(c.Example), "\n")
		assert.Contains(t, strings.ReplaceAll(string(page), "\\", ""), strings.ReplaceAll(example, "\\", ""), c.CommandPath())
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(newRoot())
}

// TestTranscripts plays testdata/transcripts. "document NAME" makes a document of Office Open XML with the input as its paragraph.
func TestTranscripts(t *testing.T) {
	clitest.Transcripts(t, "testdata/transcripts", clitest.Commands{"document": func(_ *clitest.Scene, cmd *datadriven.TestData) string {
		clitest.PutFile(t, "", cmd.CmdArgs[0].String(), string(templatetest.Docx(templatetest.Paragraph(cmd.Input))))
		return ""
	}})
}
