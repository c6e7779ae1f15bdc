package endtoend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

const (
	// waitMax is when a test gives up waiting for the program. It is no promise: how soon things
	// happen is held where the clock is virtual, and here other programs may have the processors.
	waitMax  = 3 * time.Minute
	pollEach = 2 * time.Millisecond
)

// program is one run of `troupe serve`:
//
//	launch ──► ready ──► stop | kill ──► exited
//
// One goroutine of the test uses it; log and exited may be looked at by all.
type program struct {
	*wiretest.Client
	t      testing.TB
	home   *home
	cmd    *exec.Cmd
	log    *logLines
	exited chan struct{} // closed when the process is gone
	quiet  bool          // a failed test does not show its log
}

// launch starts the program on a home and does not wait for it. What is left
// of it at the end of the test is killed. A machine with much to do is not taken
// for a disk that hangs, unless args say how long a commit may take.
func launch(t testing.TB, h *home, binary string, args ...string) *program {
	t.Helper()
	p := &program{t: t, home: h, log: newLogLines(), exited: make(chan struct{})}
	p.Client = &wiretest.Client{Address: p.log.listening, Base: h.basePath}
	p.cmd = exec.Command(binary, append([]string{"serve", "--home", h.dir, "--listen", "127.0.0.1:0", "--commit-wait-max", "2m"}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	require.NoError(t, p.cmd.Start(), "start the program")
	go func() {
		_ = p.cmd.Wait() // the state says more
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() && !p.quiet {
			t.Logf("the end of the program's log:\n%s", p.log.tail(30))
		}
	})
	return p
}

func start(t testing.TB, h *home, args ...string) *program {
	t.Helper()
	p := launch(t, h, binary(), args...)
	p.ready()
	return p
}

func (p *program) address() string {
	p.t.Helper()
	address, err := p.log.listening()
	require.NoError(p.t, err)
	return address
}

func (p *program) ready() {
	p.t.Helper()
	p.await("readiness", func() bool {
		a, err := p.Try(request{Method: "GET", Path: p.Base + "/readyz"})
		return err == nil && a.Status == 200
	})
}

// await asks a condition again and again until it holds. It fails the test when
// the time is over or the program has ended.
func (p *program) await(what string, holds func() bool) {
	p.t.Helper()
	if !p.awaitOrEnd(what, holds) {
		p.t.Fatalf("the program ended with %d while waiting for %s:\n%s", p.cmd.ProcessState.ExitCode(), what, p.log.tail(30))
	}
}

// awaitOrEnd is await for a program that may end: then it returns false.
func (p *program) awaitOrEnd(what string, holds func() bool) bool {
	p.t.Helper()
	late := time.NewTimer(waitMax)
	defer late.Stop()
	again := time.NewTicker(pollEach)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-p.exited:
			return false
		case <-late.C:
			p.t.Fatalf("waited %v in vain for %s; the program's log:\n%s", waitMax, what, p.log.tail(30))
		}
	}
	return true
}

// wantLine waits for a line of the log that holds all parts: a line may come to
// the test behind the answer that it speaks of.
func (p *program) wantLine(parts ...string) {
	p.t.Helper()
	p.await(fmt.Sprintf("a line with %q", parts), func() bool { return p.log.has(parts...) })
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s), "send %v", s)
}

// stop sends SIGTERM and demands an orderly end.
func (p *program) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		p.t.Fatalf("exit code after SIGTERM: got %d, want 0; the program's log:\n%s", code, p.log.tail(30))
	}
}

func (p *program) wait() int {
	p.t.Helper()
	late := time.NewTimer(waitMax)
	defer late.Stop()
	select {
	case <-p.exited:
	case <-late.C:
		p.t.Fatalf("the program did not end in %v; its log:\n%s", waitMax, p.log.tail(30))
	}
	return p.cmd.ProcessState.ExitCode()
}

// kill ends the process as a power switch would, and waits until it is gone.
func (p *program) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.exited
}

// logLines collects what the program prints, and finds its address in it.
type logLines struct {
	mu struct {
		sync.Mutex
		text    bytes.Buffer
		partial []byte // a line whose end has not come yet
		address string
	}
}

func newLogLines() *logLines { return new(logLines) }

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.text.Write(b)
	l.mu.partial = append(l.mu.partial, b...)
	for {
		line, rest, found := bytes.Cut(l.mu.partial, []byte("\n"))
		if !found {
			return len(b), nil
		}
		l.mu.partial = rest
		var entry struct{ Message, Address string }
		if json.Unmarshal(line, &entry) == nil && entry.Message == "listening" && l.mu.address == "" {
			l.mu.address = entry.Address
		}
	}
}

func (l *logLines) listening() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.address == "" {
		return "", errors.New("the program does not listen yet")
	}
	return l.mu.address, nil
}

func (l *logLines) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.mu.text.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		return true
	}
	return false
}

func (l *logLines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.text.String()
}

func (l *logLines) tail(lines int) string {
	all := strings.SplitAfter(l.all(), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}
