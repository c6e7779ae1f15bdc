package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
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
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the tour needs %s: %v", tool, err)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	script, want := tour(string(text))
	if script == "" || want == "" {
		t.Fatal("README has no tour")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "troupe")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	addr := freeAddress(t)
	stop := startServer(t, program, dir, addr)
	defer stop()

	script = strings.ReplaceAll(script, "go run ./cmd/troupe", program)
	script = strings.ReplaceAll(script, "127.0.0.1:8080", addr)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script)
	shell.Dir = dir
	var printed, complaints bytes.Buffer
	shell.Stdout, shell.Stderr = &printed, &complaints
	if err := shell.Run(); err != nil {
		t.Fatalf("tour: %v\n%s%s", err, printed.Bytes(), complaints.Bytes())
	}
	// The last command shows the whole instance, which README leaves to the eye.
	if got := normal(printed.String()); !strings.HasPrefix(got, normal(want)) {
		t.Errorf("the tour prints\n%s\nREADME shows\n%s", got, normal(want))
	}
	if n := strings.Count(printed.String(), `"transitionEvent":"approve"`); n != 1 {
		t.Errorf("the last command shows %d approvals in the history, want 1", n)
	}
}

// tour takes the shell blocks that are marked as the tour out of README, and the
// JSON blocks behind them.
func tour(readme string) (script, want string) {
	for _, part := range strings.Split(readme, "<!-- tour -->\n```sh\n")[1:] {
		commands, rest, _ := strings.Cut(part, "```")
		script += commands
		if _, shown, ok := strings.Cut(rest, "```json\n"); ok {
			shown, _, _ = strings.Cut(shown, "```")
			want += shown
		}
	}
	return script, want
}

var (
	anID   = regexp.MustCompile(`\b01[0-9A-HJKMNP-TV-Z]{24}\b`)
	aTime  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	breaks = strings.NewReplacer("\n", "")
)

func normal(s string) string {
	return breaks.Replace(aTime.ReplaceAllString(anID.ReplaceAllString(s, "ID"), "TIME"))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// startServer runs `troupe serve` in dir and waits until it is ready. stop ends
// it as an operator would, and it must exit 0.
func startServer(t *testing.T, program, dir, addr string) (stop func()) {
	t.Helper()
	server := exec.Command(program, "serve", "--listen", addr)
	server.Dir = dir
	var logs bytes.Buffer
	server.Stderr = &logs
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	stop = func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("serve: %v\n%s", err, logs.String())
		}
	}
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	late := time.After(20 * time.Second)
	for {
		select {
		case err := <-ended:
			t.Fatalf("serve ended: %v\n%s", err, logs.String())
		case <-late:
			_ = server.Process.Kill()
			t.Fatalf("serve is not ready: %v\n%s", <-ended, logs.String())
		case <-look.C:
			if r, err := client.Get("http://" + addr + "/readyz"); err == nil {
				_ = r.Body.Close()
				if r.StatusCode == http.StatusOK {
					return stop
				}
			}
		}
	}
}
