package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/admin"
)

var (
	// between stands between the commands of an example, and around files.
	between = regexp.MustCompile(`\s(?:\||&&)\s|\s[<>]\s+\S+|\s+#.*$`)
	// unrunnable is what needs more than a home and its server, lasts, or changes more than a folder of the test.
	unrunnable = regexp.MustCompile(`^troupe (serve|bench|cluster|completion|man|publish|password|instance watch|test .*--watch|worker|export run|store (backup|restore|drill|import))\b|--follow|[@=<|>&]|~|(^|[^.\w])/|localhost|production`)
)

// TestExamples takes the examples out of the help of all commands. The program takes the flags and arguments of each;
// beside a server at its first start it runs those that need nothing else, and testdata/examples.txt has what they come
// to: the exit code and the first complaint. No example may be used wrongly.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a program")
	}
	results, err := filepath.Abs(filepath.Join("testdata", "examples.txt"))
	require.NoError(t, err)
	p := startProgram(t, "--home", "troupe-home")
	socket, err := admin.Dial(t.Context(), "troupe-home/admin.sock")
	require.NoError(t, err)
	token, _, err := socket.Create(t.Context(), identity.Token, identity.CreateCredential{User: "olivia.park"})
	require.NoError(t, err)
	clitest.Isolated(t)
	contexts := filepath.Dir(os.Getenv("TROUPE_CONTEXTS")) + "/"
	t.Setenv("TROUPE_ADDRESS", "http://"+p.Addr)
	t.Setenv("TROUPE_TOKEN", token)
	datadriven.RunTest(t, results, func(t *testing.T, _ *datadriven.TestData) string {
		var out strings.Builder
		for _, line := range examplesOf(newRoot()) {
			takes(t, line)
			if unrunnable.MatchString(line) {
				continue
			}
			code, _, stderr := clitest.Invoke(clitest.Words(line)[1:]...)
			assert.NotEqual(t, cli.ExitUsage, code, "%s: %s", line, stderr)
			_, _ = fmt.Fprintf(&out, "%d %s\n", code, line)
			if complaint, _, _ := strings.Cut(stderr, "\n"); code != cli.ExitDone {
				out.WriteString("  " + strings.ReplaceAll(complaint, contexts, "") + "\n")
			}
		}
		return out.String()
	})
}

// examplesOf are those of a command and all below it, each once, a line each.
func examplesOf(c *cobra.Command) (lines []string) {
	for line := range strings.Lines(strings.ReplaceAll(c.Example, "\\\n", " ")) {
		lines = append(lines, strings.TrimSpace(line))
	}
	for _, below := range c.Commands() {
		for _, line := range examplesOf(below) {
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// takes holds that the program has the commands of a line, with these flags and as many arguments.
func takes(t *testing.T, line string) {
	t.Helper()
	for _, part := range between.Split(line, -1) {
		words := clitest.Words(part)
		if len(words) == 0 || words[0] != "troupe" {
			continue
		}
		c, rest, err := newRoot().Find(words[1:])
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err == nil {
			err = c.ValidateArgs(c.Flags().Args())
		}
		assert.True(t, err == nil && c.Runnable(), "%s: %v", line, err)
	}
}
