package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReadmeTour runs the commands of README's tour as they stand there, in one
// shell, against the real program on an empty folder, and compares what they
// print with what README shows. Only ids, times and line breaks may differ, and
// the port.
func TestReadmeTour(t *testing.T) {
	p := startProgram(t)
	script, want := readme(t, "tour")
	printed := p.shell(script)
	// The last command shows the whole instance, which README leaves to the eye.
	if got := normal(printed); !strings.HasPrefix(got, normal(want)) {
		t.Errorf("the tour prints\n%s\nREADME shows\n%s", got, normal(want))
	}
	if n := strings.Count(printed, `"transitionEvent":"approve"`); n != 1 {
		t.Errorf("the last command shows %d approvals in the history, want 1", n)
	}
}

// TestReadmeSignIn does the same with the section on signing in.
func TestReadmeSignIn(t *testing.T) {
	p := startProgram(t)
	script, want := readme(t, "sign-in")
	if got := normal(p.shell(script)); got != normal(want) {
		t.Errorf("the commands print\n%s\nREADME shows\n%s", got, normal(want))
	}
}

// TestReadmeForms does the same with the section on forms.
func TestReadmeForms(t *testing.T) {
	p := startProgram(t)
	script, want := readme(t, "forms")
	if got := normal(p.shell(script)); got != normal(want) {
		t.Errorf("the commands print\n%s\nREADME shows\n%s", got, normal(want))
	}
}

// TestShownTour runs what a first start says to try next.
func TestShownTour(t *testing.T) {
	p := startProgram(t)
	const mark = "try next: "
	var script string
	// It is ready before it shows them.
	for line := range strings.Lines(p.awaitLog(mark + ".*password set.*\n")[0]) {
		var entry struct{ Message string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if command, found := strings.CutPrefix(entry.Message, mark); found {
			script += command + "\n"
		}
	}
	script += `curl -s -H "Content-Type: application/json" -d '{"user":"john.doe","password":"a password"}' http://` + p.addr + "/session\n"
	printed := p.shell(script)
	for _, want := range []string{`"id":"leave-request"`, `"transitionEvent":"submit"`, `{"user":"john.doe","name":"John Doe",`} {
		if !strings.Contains(printed, want) {
			t.Errorf("%s\nprints no %s:\n%s", script, want, printed)
		}
	}
	if strings.Contains(printed, `"error"`) {
		t.Errorf("%s\nprints an error:\n%s", script, printed)
	}
}

// readme takes the shell blocks with a mark out of README, and the JSON blocks
// behind them.
func readme(t *testing.T, mark string) (script, want string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "<!-- "+mark+" -->\n```sh\n")[1:] {
		commands, rest, _ := strings.Cut(part, "```")
		script += commands
		rest, _, _ = strings.Cut(rest, "```sh\n") // what stands there belongs to other commands
		if _, shown, ok := strings.Cut(rest, "```json\n"); ok {
			shown, _, _ = strings.Cut(shown, "```")
			want += shown
		}
	}
	if script == "" || want == "" {
		t.Fatalf("README has no %s", mark)
	}
	return script, want
}

// realProgram is the program on an empty folder, in which it was started for the
// first time.
type realProgram struct {
	t            *testing.T
	dir, program string
	addr, log    string // addr is where it listens; log is its file
}

// startProgram builds and starts it. It ends with the test.
func startProgram(t *testing.T) *realProgram {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the tour needs %s: %v", tool, err)
		}
	}
	dir := t.TempDir()
	p := &realProgram{t: t, dir: dir, program: filepath.Join(dir, "troupe"), log: filepath.Join(dir, "log")}
	if out, err := exec.Command("go", "build", "-o", p.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	p.start()
	return p
}

// shell runs a script as README has it and returns what it prints.
func (p *realProgram) shell(script string) string {
	p.t.Helper()
	script = strings.ReplaceAll(script, "go run ./cmd/troupe", p.program)
	script = strings.ReplaceAll(script, "127.0.0.1:8080", p.addr)
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script)
	shell.Dir = p.dir
	var printed, complaints bytes.Buffer
	shell.Stdout, shell.Stderr = &printed, &complaints
	if err := shell.Run(); err != nil {
		p.t.Fatalf("%s: %v\n%s%s", script, err, printed.Bytes(), complaints.Bytes())
	}
	return printed.String()
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

// awaitLog waits until a pattern is in the log. It returns the log until there,
// and what the pattern's groups match.
func (p *realProgram) awaitLog(pattern string) []string {
	p.t.Helper()
	wanted := regexp.MustCompile(pattern)
	late := time.Now().Add(20 * time.Second)
	for look := time.NewTicker(20 * time.Millisecond); ; <-look.C {
		log, err := os.ReadFile(p.log)
		if err != nil {
			p.t.Fatal(err)
		}
		if at := wanted.FindSubmatchIndex(log); at != nil {
			found := []string{string(log[:at[1]])}
			for i := 2; i < len(at); i += 2 {
				found = append(found, string(log[at[i]:at[i+1]]))
			}
			return found
		}
		if time.Now().After(late) {
			p.t.Fatalf("the log has no %s:\n%s", pattern, log)
		}
	}
}

// start runs `troupe serve` and waits until it is ready. With the test it is ended
// as an operator would, and it must exit 0.
func (p *realProgram) start() {
	p.t.Helper()
	server := exec.Command(p.program, "serve", "--listen", "127.0.0.1:0")
	server.Dir = p.dir
	log, err := os.Create(p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	server.Stderr = log
	if err := server.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		if err := server.Wait(); err != nil {
			text, _ := os.ReadFile(p.log)
			p.t.Errorf("serve: %v\n%s", err, text)
		}
		_ = log.Close()
	})
	p.addr = p.awaitLog(`"address":"([^"]+)".*"message":"listening"`)[1]
	p.awaitLog(`"message":"ready"`)
}
