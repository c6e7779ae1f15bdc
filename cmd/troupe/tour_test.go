package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/bench/process"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/receiver"
)

// asProgram makes this test the program: what a tour runs is built as its test is,
// also with the race detector.
const asProgram = "TROUPE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	// A tenth of the time of these tests went to the collector: they make much garbage and keep little.
	debug.SetGCPercent(400)
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} { // NB: what a table shows follows them
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	clitest.Program = newRoot
	os.Exit(m.Run())
}

// TestTours runs the tours of README and of TOUR.md, and what a first start says to
// try next.
func TestTours(t *testing.T) {
	if testing.Short() {
		t.Skip("each command is a program of its own to start")
	}
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the tour needs %s: %v", tool, err)
		}
	}
	for _, file := range []string{filepath.Join("..", "..", "README.md"), "TOUR.md"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			blocks, received := tourBlocks(t, file), receivedBlocks(t, file)
			if len(received) == 0 {
				startProgram(t, "--demo").tour(file, blocks) // as README says
				return
			}
			output := receive(t)
			startProgram(t).tour(file, blocks)
			got, want := normal(output()), normal(strings.Join(received, ""))
			assert.True(t, strings.HasSuffix(got, want), "%s: the receiver prints\n%s\nthe document shows\n%s", file, got, want)
		})
	}
	t.Run("what a first start shows", func(t *testing.T) { startProgram(t).shownTour() })
}

// tour runs the commands of a document as they stand there, in one shell. It compares
// what each block of commands prints with what the document shows below the block.
// Only ids, times, line breaks and the port may differ, and that a person looks once a second.
func (p *realProgram) tour(file string, blocks []tourBlock) {
	p.t.Helper()
	const end = "==== end of a block ===="
	var script strings.Builder
	for _, b := range blocks {
		script.WriteString(b.commands + "printf '%s\n' '" + end + "'\n")
	}
	printed := strings.Split(p.shell(script.String()), end+"\n")
	require.Len(p.t, printed, len(blocks)+1, "%s: got %d outputs of %d blocks", file, len(printed)-1, len(blocks))
	for i, b := range blocks {
		assert.Equal(p.t, normal(b.shown), normal(printed[i]), "%s:%d: the commands print", file, b.line)
	}
}

// shownTour runs what the first start has said to try, in plain lines among those of the log.
func (p *realProgram) shownTour() {
	p.t.Helper()
	var script string
	for line := range strings.Lines(p.awaitLog(" password set --home ")) {
		command, found := strings.CutPrefix(line, "  ")
		if found && !strings.Contains(command, "#link=") {
			script += command
		}
	}
	script += `curl -s -H "Content-Type: application/json" -d '{"user":"john.doe","password":"a password"}' http://` + p.Addr + "/session\n"
	printed := p.shell(script)
	for _, want := range []string{`"workflowId":"leave-request"`, `"nodeId":"draft"`, `{"user":"john.doe","name":"John Doe",`} {
		assert.Contains(p.t, printed, want, "%s\nprints no", script)
	}
	assert.NotContains(p.t, printed, `"error"`, "%s\nprints an error", script)
}

// tourBlock is a block of commands, and what the document shows below it.
type tourBlock struct {
	line            int // of the commands in the document
	commands, shown string
}

// markedCommands is a shell block behind its mark, with the block that shows what it
// prints, if there is one right below.
var markedCommands = regexp.MustCompile("(?s)<!-- run -->\n```sh\n(.*?)```\n(?:\n```(?:json|text|mermaid)\n(.*?)```\n)?")

func tourBlocks(t *testing.T, file string) []tourBlock {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var blocks []tourBlock
	for _, at := range markedCommands.FindAllSubmatchIndex(text, -1) {
		b := tourBlock{line: 1 + bytes.Count(text[:at[2]], []byte("\n")), commands: string(text[at[2]:at[3]])}
		if at[4] >= 0 {
			b.shown = string(text[at[4]:at[5]])
		}
		blocks = append(blocks, b)
	}
	marks := bytes.Count(text, []byte("<!-- run -->\n"))
	require.True(t, len(blocks) != 0 && len(blocks) == marks, "%s has %d marks and %d blocks of commands behind them", file, marks, len(blocks))
	return blocks
}

// receiverShows is what the receiver prints, behind its mark.
var receiverShows = regexp.MustCompile("(?s)<!-- receiver -->\n```text\n(.*?)```\n")

func receivedBlocks(t *testing.T, file string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, found := range receiverShows.FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(found[1]))
	}
	return blocks
}

// startReceiver starts the receiver at addresses of its own, and returns them and what gives all that it has printed at its end.
func startReceiver(t *testing.T, flags ...string) (webhooks, mails string, shown func() string) {
	t.Helper()
	printed, out, err := os.Pipe() // NB: it has room for what the receiver prints meanwhile
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := receiver.Run(ctx, append(flags, "-webhooks", "127.0.0.1:0", "-mails", "127.0.0.1:0"), out, io.Discard)
		ended <- errors.Join(err, out.Close())
	}()
	lines := bufio.NewReader(printed)
	_, err = fmt.Fscanf(lines, "webhooks at %s mails at %s\n", &webhooks, &mails)
	require.NoError(t, err)
	return strings.TrimSuffix(webhooks, ","), mails, func() string {
		stop()
		rest, err := io.ReadAll(lines)
		assert.NoError(t, errors.Join(err, <-ended))
		return string(rest)
	}
}

// receive starts the receiver as that of the program of the test.
func receive(t *testing.T) func() string {
	t.Helper()
	webhooks, mails, shown := startReceiver(t)
	_, port, _ := strings.Cut(mails, ":")
	t.Setenv("TROUPE_WEBHOOKS_ENDPOINTS", `{purchase-order: {supplier: {url: "`+webhooks+`/orders", secret: whsec_dGhpcyBpcyBhbiBleGFtcGxlLCBub3QgYSBzZWNyZXQ=}}}`)
	t.Setenv("TROUPE_MAIL_HOST", "127.0.0.1")
	t.Setenv("TROUPE_MAIL_PORT", port)
	t.Setenv("TROUPE_MAIL_FROM", "Troupe <troupe@example.org>")
	return shown
}

var (
	anID    = regexp.MustCompile(`\b01[0-9A-HJKMNP-TV-Z]{24}\b`)
	aTime   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	aMoment = regexp.MustCompile(`\b[12]\d{12}\b`) // in milliseconds
	breaks  = strings.NewReplacer("\n", "")
)

func normal(s string) string {
	for name, what := range map[string]*regexp.Regexp{"ID": anID, "TIME": aTime, "MOMENT": aMoment} {
		s = what.ReplaceAllString(s, name)
	}
	return breaks.Replace(s)
}

// realProgram is the program on an empty folder, in which it was started for the
// first time.
type realProgram struct {
	*process.Process
	t *testing.T
}

// Names in the folder.
const (
	programFile = "./troupe" // as the tour calls it
	programLog  = "log"
)

// startProgram runs `troupe serve` with more flags in a new folder, which becomes the test's, and
// waits until it is ready. It ends with the test.
func startProgram(t *testing.T, flags ...string) *realProgram {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv(asProgram, "1")
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, programFile)
	}
	require.NoError(t, err)
	// A machine with much to do is not taken for a disk that hangs.
	server, err := process.Start(t.Context(), programLog, programFile, append([]string{"serve", "--admin=", "--commit-wait-max", "2m"}, flags...)...)
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	return &realProgram{server, t}
}

func (p *realProgram) shell(script string) string {
	p.t.Helper()
	script = strings.ReplaceAll(script, "go run ./cmd/troupe", programFile)
	script = strings.ReplaceAll(script, "127.0.0.1:8080", p.Addr)
	script = strings.ReplaceAll(script, "sleep 1;", "sleep 0.1;")
	shell := exec.CommandContext(p.t.Context(), "bash", "-eu", "-o", "pipefail", "-c", script)
	shell.Env = append(os.Environ(), "TROUPE_CONTEXTS=contexts.yaml")
	var printed, complaints bytes.Buffer
	shell.Stdout, shell.Stderr = &printed, &complaints
	if err := shell.Run(); err != nil {
		p.t.Fatalf("%s: %v\n%s%s", script, err, printed.Bytes(), complaints.Bytes())
	}
	return printed.String()
}

// awaitLog waits until a text is in the log, and returns the log.
func (p *realProgram) awaitLog(text string) string {
	p.t.Helper()
	for look := time.NewTicker(5 * time.Millisecond); ; <-look.C {
		ended := p.Failure()
		log, err := os.ReadFile(programLog)
		require.NoError(p.t, errors.Join(err, ended), "the log has no %s", text)
		if bytes.Contains(log, []byte(text)) {
			return string(log)
		}
	}
}
