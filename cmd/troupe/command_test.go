package main

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

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
	visit(newRoot())
}

// TestTranscripts plays testdata/transcripts. "document NAME" makes a document of Office Open XML with the input as its paragraph.
func TestTranscripts(t *testing.T) {
	clitest.Transcripts(t, "testdata/transcripts", clitest.Commands{"document": func(_ *clitest.Scene, cmd *datadriven.TestData) string {
		clitest.PutFile(t, "", cmd.CmdArgs[0].String(), string(templatetest.Docx(templatetest.Paragraph(cmd.Input))))
		return ""
	}})
}
