package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/clitest"
)

// otherPort is an address of the runbook that is not that of its first server.
var otherPort = regexp.MustCompile(`127\.0\.0\.1:(8[12]8\d|94\d\d)`)

// TestRunbook runs what deploy/RUNBOOK.md says to run, in one shell, beside a server at its first start.
func TestRunbook(t *testing.T) {
	if testing.Short() {
		t.Skip("each command is a program of its own to start")
	}
	for _, tool := range []string{"bash", "curl", "awk", "cmp"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the runbook needs %s: %v", tool, err)
		}
	}
	file, err := filepath.Abs(filepath.Join("..", "..", "deploy", "RUNBOOK.md"))
	require.NoError(t, err)
	blocks, places := tourBlocks(t, file), map[string]string{}
	for i := range blocks {
		blocks[i].commands = otherPort.ReplaceAllStringFunc(blocks[i].commands, func(named string) string {
			if places[named] == "" {
				places[named] = clitest.NodeAddress()
			}
			return places[named]
		})
	}
	blocks[0].commands = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n" + blocks[0].commands
	p := startProgram(t)
	here, err := os.Getwd()
	require.NoError(t, err)
	t.Setenv("PATH", here+":"+os.Getenv("PATH"))
	p.tour(file, blocks)
}
