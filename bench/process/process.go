// Package process starts the servers that are measured, each as a process of its own, ends them, and reads what they
// used. On Linux they end even when this program is killed. Processor times and memory come from /proc.
package process

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

const (
	// readyWaitMax is when a server that neither answers nor ends is given up. It is not a promise: other programs may
	// have the processors.
	readyWaitMax = 3 * time.Minute
	stopWaitMax  = 15 * time.Second
)

// Process is a server that this program started.
type Process struct {
	// Addr is where it listens.
	Addr string

	cmd    *exec.Cmd
	log    string // the file with all that it prints
	cancel context.CancelFunc
	ended  chan struct{} // closed when it is gone
	err    error         // how it ended; read after ended is closed
}

// Start starts a server and returns when it is ready. It is told with --listen behind args where to listen: a loopback
// address that nobody listens on. All that it prints is appended to the file log.
func Start(ctx context.Context, log, program string, args ...string) (*Process, error) {
	listen, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	p, err := Launch(ctx, log, listen, program, args...)
	if err != nil {
		return nil, err
	}
	if err := p.waitReady(ctx); err != nil {
		p.Stop()
		return nil, p.explain(err)
	}
	return p, nil
}

func (p *Process) explain(err error) error {
	err = fmt.Errorf("%s: %w", lineOf(p.cmd), err)
	if words := p.LastWords(); words != "" {
		err = fmt.Errorf("%w\n%s", err, words)
	}
	return err
}

// Failure is nil while the process runs, and wraps ErrEnded when it is gone.
func (p *Process) Failure() error {
	select {
	case <-p.ended:
		return p.explain(p.endedError())
	default:
		return nil
	}
}

func (p *Process) endedError() error {
	if p.err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, p.err)
	}
	return ErrEnded
}

// Launch is Start, but does not wait for the server, and is told where it shall listen.
func Launch(ctx context.Context, log, listen, program string, args ...string) (*Process, error) {
	p, err := Run(ctx, log, nil, program, append(slices.Clone(args), "--listen", listen)...)
	if err == nil {
		p.Addr = listen
	}
	return p, err
}

// Run starts any other program, with these arguments and no others, and does not wait for it. as, if not nil, says for
// example as which user.
func Run(ctx context.Context, log string, as *syscall.SysProcAttr, program string, args ...string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the process has its own handle
	// NB: not ctx, so that Stop asks it to end, in order, after an interrupt too.
	ctx2, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &Process{log: log, cancel: cancel, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx2, program, args...)
	if p.cmd.SysProcAttr = as; as == nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopWaitMax
	endWithParent(p.cmd)
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return p, nil
}

func (p *Process) run(started chan<- error) {
	// NB: for the kernel the parent is this thread, see endWithParent. It ends with a
	// goroutine that is locked to it, and other threads of Go's when they like.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

func (p *Process) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWaitMax)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := Get(ctx, "http://"+p.Addr+"/readyz"); err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-p.ended:
			return p.endedError()
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", ctx.Err())
		}
	}
}

// Get asks a server once, over a connection of its own. Another answer than 200 is an error with its text.
func Get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", reply.Status, body)
	}
	return body, err
}

// ErrEnded is the error of a process that is gone.
var ErrEnded = errors.New("the program does not serve: it ended")

// Stop asks the process to end, kills it when that takes too long, and returns when it is gone.
func (p *Process) Stop() {
	p.cancel()
	<-p.ended
}

// Kill ends the process as a loss of power would, and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error says that it is gone already
	<-p.ended
	p.cancel()
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// LastWords are the last lines that the process printed.
func (p *Process) LastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// ProcessorTime returns the processor time, in user and system mode, that a process has used.
func ProcessorTime(pid int) (time.Duration, error) {
	stat, err := statOf(pid)
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

// ResidentBytes returns how much memory a process has; 0 when it cannot be read.
func ResidentBytes(pid int) int64 {
	stat, _ := statOf(pid) // zero after an error
	return int64(stat.ResidentMemory())
}

func statOf(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

// Build builds troupe from this tree into a folder and returns its path. It is the program that README has people
// build, without C: with it, what Pebble sets aside is not memory of Go's, and the collector has another pace.
func Build(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "troupe")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "troupe/cmd/troupe")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	_, err = outputOf(cmd)
	return program, err
}

// Serve starts a build of troupe on a home, with an API token for each of some of its users. Its log is beside the home.
func Serve(ctx context.Context, program, home string, users []string, args ...string) (p *Process, tokens map[string]string, err error) {
	tokens = map[string]string{}
	for _, u := range users {
		if tokens[u], err = Output(ctx, program, "token", "create", "--home", home, "--user", u); err != nil {
			return nil, nil, err
		}
	}
	p, err = Start(ctx, home+".log", program, append([]string{"serve", "--home", home}, args...)...)
	return p, tokens, err
}

// Output runs a command and returns what it prints, without the line end.
func Output(ctx context.Context, name string, args ...string) (string, error) {
	return outputOf(exec.CommandContext(ctx, name, args...))
}

func outputOf(cmd *exec.Cmd) (string, error) {
	text, err := cmd.Output()
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w\n%s", err, failed.Stderr)
	}
	return "", fmt.Errorf("%s: %w", lineOf(cmd), err)
}

func lineOf(cmd *exec.Cmd) string {
	return strings.Join(append([]string{filepath.Base(cmd.Path)}, cmd.Args[1:]...), " ")
}

// Main runs a program with its command line and returns its exit code. An interrupt or SIGTERM ends the context.
func Main(name string, run func(ctx context.Context, args []string, out, errs io.Writer) error) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil {
		return 0
	}
	if !errors.Is(err, flag.ErrHelp) { // package flag has said everything
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	return 1
}
