package work

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/gateway/client"
)

// namedError is what went wrong with one of several.
type namedError struct {
	name string
	error
}

func (n namedError) Error() string { return n.name + ": " + n.error.Error() }
func (n namedError) Unwrap() error { return n.error }

// worker is what a command line asks for.
type worker struct {
	client.Worker
	command []string
	stderr  io.Writer
}

func newWorker() *cobra.Command {
	w := &worker{}
	cmd := &cobra.Command{
		Use: "worker COMMAND [ARGUMENT...]", Short: "Run a program for each job",
		Long: `Takes jobs of the types, and runs the program for each: the data of the job is its standard input, and what it writes to
standard output, JSON or nothing, is the output of the job. The environment has TROUPE_JOB_ID, TROUPE_JOB_TYPE,
TROUPE_ATTEMPT, TROUPE_ATTEMPTS_LEFT, TROUPE_WORKFLOW_ID, TROUPE_WORKFLOW_VERSION, TROUPE_INSTANCE_ID,
TROUPE_STATE_MACHINE_ID and TROUPE_NODE_ID.

Exit code 0 is done; 75 is later: the job comes back after the delay of its type, and no attempt is counted; any other is a
failed attempt, with the last line of standard error as its message. The lease is extended while the program runs. A program
whose job was given to another worker, or whose instance needs it no more, is killed.

The worker ends on SIGTERM or SIGINT when its programs have ended; a second one kills them, and gives their jobs back. While
the service is away, it tries again. Its user needs mod-jobs, or a role that the definitions allow.`,
		Example: "  troupe worker --type charge-card --concurrency 4 -- ./charge.sh\n" +
			"  troupe worker --type ping -- sh -c 'echo \"{\\\"pong\\\": true}\"'",
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows is the program's
	f.StringArrayVar(&w.Types, "type", nil, "take jobs of this type; may be repeated")
	f.IntVar(&w.Concurrency, "concurrency", 1, "how many programs run at a time")
	w.Lease = time.Minute
	f.Var(cli.Duration(&w.Lease), "lease", "how soon another worker gets a job when this one has gone")
	f.StringVar(&w.Name, "name", "", "name of the worker in lists (default: the machine and the process)")
	at := connect.AddFlags(cmd)
	at.AddHome(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		switch {
		case len(w.Types) == 0:
			return cli.Usagef("--type is missing: which jobs the program is for")
		case w.Concurrency < 1 || w.Concurrency > 1000:
			return cli.Usagef("--concurrency must be 1 to 1000")
		case w.Lease != 0 && w.Lease < time.Second:
			return cli.Usagef("--lease must be at least 1s")
		}
		if _, err := exec.LookPath(args[0]); err != nil {
			return cli.Usage(err)
		}
		if w.Client, err = at.Client(0); err != nil {
			return err
		}
		defer w.Client.Close()
		w.command, w.stderr = args, &lockedWriter{to: cmd.ErrOrStderr()}
		return connect.Explain(w.run(cmd.Context()))
	}
	return cmd
}

// lockedWriter is a stream that several programs write to.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// run works until a signal.
func (w *worker) run(ctx context.Context) error {
	taking, stop := context.WithCancel(ctx)
	defer stop()
	base, kill := context.WithCancel(ctx)
	defer kill()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, cli.EndSignals()...)
	defer signal.Stop(signals)
	var following sync.WaitGroup
	defer following.Wait()
	ended := make(chan struct{})
	defer close(ended)
	following.Go(func() {
		for _, do := range []struct {
			end  func()
			text string
		}{{stop, "The worker ends when its programs have; another signal kills them."}, {kill, "The programs are killed."}} {
			select {
			case <-signals:
				do.end()
				w.say("%s", do.text)
			case <-ended:
				return
			}
		}
	})
	w.Base, w.Handle = base, w.handle
	w.OnError = func(err error) { w.say("troupe worker: %v", err) }
	w.say("Waiting for jobs of %s.", strings.Join(w.Types, ", "))
	return w.Run(taking)
}

func (w *worker) say(format string, args ...any) {
	_, _ = fmt.Fprintf(w.stderr, format+"\n", args...)
}

const (
	exitLater   = 75 // EX_TEMPFAIL of sysexits.h
	outputMax   = 4 << 20
	lastLineMax = 4 << 10
)

// handle runs the program for a job.
func (w *worker) handle(ctx context.Context, job *client.Job) (any, error) {
	out, complaints := &bounded{}, &tail{to: w.stderr}
	cmd := exec.CommandContext(ctx, w.command[0], w.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(job.Data), out, complaints
	cmd.Env = append(os.Environ(),
		"TROUPE_JOB_ID="+job.JobID, "TROUPE_JOB_TYPE="+job.Type,
		"TROUPE_ATTEMPT="+strconv.Itoa(job.Attempt), "TROUPE_ATTEMPTS_LEFT="+strconv.Itoa(job.AttemptsLeft),
		"TROUPE_WORKFLOW_ID="+job.WorkflowID, "TROUPE_WORKFLOW_VERSION="+strconv.FormatUint(job.Version, 10),
		"TROUPE_INSTANCE_ID="+job.InstanceID, "TROUPE_STATE_MACHINE_ID="+job.StateMachineID, "TROUPE_NODE_ID="+job.NodeID)
	if job.Traceparent != "" {
		cmd.Env = append(cmd.Env, "TRACEPARENT="+job.Traceparent)
	}
	// NB: an interrupt from the keyboard is for the worker alone, and whoever is killed takes along what it has started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, client.Later(err) // it is not the job's fault
	}
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() {
		err = nil // it has left something behind that holds its output open
	}
	exit := (*exec.ExitError)(nil)
	switch {
	case out.over:
		return nil, fmt.Errorf("the output is larger than %d MiB", outputMax>>20)
	case err == nil:
		return outputOf(out.text)
	case errors.As(err, &exit) && exit.ExitCode() == exitLater:
		return nil, client.Later(complaints.or(err))
	}
	return nil, complaints.or(err)
}

// outputOf is the JSON that a program has written, nil for nothing.
func outputOf(text []byte) (any, error) {
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil, nil
	}
	var output json.RawMessage
	if err := json.Unmarshal(text, &output); err != nil {
		return nil, fmt.Errorf("the output is not JSON: %w", err)
	}
	return output, nil
}

// bounded keeps what is written, up to outputMax.
type bounded struct {
	text []byte
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.over = b.over || len(b.text)+len(p) > outputMax; b.over {
		return 0, errors.New("too much output")
	}
	b.text = append(b.text, p...)
	return len(p), nil
}

// tail passes on what is written, and keeps the last line that is not blank.
type tail struct {
	to   io.Writer
	line []byte // that has not ended
	last string
}

func (t *tail) Write(p []byte) (int, error) {
	for piece := range bytes.Lines(p) {
		if room := lastLineMax - len(t.line); room > 0 {
			t.line = append(t.line, piece[:min(room, len(piece))]...)
		}
		if piece[len(piece)-1] == '\n' {
			t.end()
		}
	}
	return t.to.Write(p)
}

func (t *tail) end() {
	if text := strings.TrimSpace(strings.ToValidUTF8(string(t.line), "\uFFFD")); text != "" {
		t.last = text
	}
	t.line = t.line[:0]
}

// or is the last line as an error, or err when there was none.
func (t *tail) or(err error) error {
	if t.end(); t.last != "" {
		return errors.New(t.last)
	}
	return err
}
