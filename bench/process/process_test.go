package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAServerThatEndsIsAnErrorWithItsLastWords(t *testing.T) {
	_, err := Start(t.Context(), filepath.Join(t.TempDir(), "log"), "/bin/sh", "-c", "echo no such home; exit 3")
	if err == nil || !strings.Contains(err.Error(), "no such home") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
}

// TestAProgramThatDoesNotServe is named as that, without an empty log behind it.
func TestAProgramThatDoesNotServe(t *testing.T) {
	for program, want := range map[string]string{"true": ": the program does not serve: it ended", "false": ": the program does not serve: it ended: exit status 1"} {
		if _, err := Start(t.Context(), filepath.Join(t.TempDir(), "log"), program, "serve"); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want it to end with %q", program, err, want)
		}
	}
}

func TestAProcessThatHasEndedSaysSo(t *testing.T) {
	p, err := Launch(t.Context(), filepath.Join(t.TempDir(), "log"), "nowhere", "/bin/sh", "-c", "echo the port is taken; read line")
	if err != nil {
		t.Fatal(err)
	}
	<-p.Ended() // nothing is on its standard input
	if err := p.Failure(); !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("behind its end: %v", err)
	}
	p, err = Launch(t.Context(), filepath.Join(t.TempDir(), "log"), "nowhere", "/bin/sh", "-c", "exec sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Failure(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	p.Kill()
}

func TestWhatAProcessHasUsed(t *testing.T) {
	if own, err := ProcessorTime(os.Getpid()); err != nil || own < 0 {
		t.Errorf("processor time: got %v, %v", own, err)
	}
	if own := ResidentBytes(os.Getpid()); own < 1<<20 {
		t.Errorf("memory: got %d bytes", own)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if own := PeakBytes(ended, os.Getpid()); own < 1<<20 {
		t.Errorf("the most memory: got %d bytes", own)
	}
	const nobody = 1 << 30 // above the largest number of a process
	if used, err := ProcessorTime(nobody); err == nil || ResidentBytes(nobody) != 0 {
		t.Errorf("a process that is not there: got %v", used)
	}
}

// TestATreeHasWhatItsProcessesHave starts two processes below this one: a shell that has
// worked and waits, and what it waits for.
func TestATreeHasWhatItsProcessesHave(t *testing.T) {
	shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; cat | cat")
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte{'x'}); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // the loop is over, and both cats run
		t.Fatal(err)
	}
	one, err := ProcessorTime(shell.Process.Pid)
	all, err2 := TreeTime(os.Getpid())
	if err != nil || err2 != nil || all < one {
		t.Errorf("processor time: got %v with the shell's %v, %v, %v", all, one, err, err2)
	}
	if own, all := TreeBytes(shell.Process.Pid), TreeBytes(os.Getpid()); own <= 0 || all <= own {
		t.Errorf("memory: got %d bytes with the shell's %d", all, own)
	}
	if tree, err := treeOf(shell.Process.Pid); err != nil || len(tree) != 3 {
		t.Errorf("got %d processes, %v, want the shell and both below", len(tree), err)
	}
	if err := errors.Join(in.Close(), shell.Wait()); err != nil {
		t.Error(err)
	}
	if used, err := TreeTime(1 << 30); err == nil || TreeBytes(1<<30) != 0 {
		t.Errorf("a process that is not there: got %v", used)
	}
}

func TestOutputIsWhatACommandPrints(t *testing.T) {
	if got, err := Output(t.Context(), "/bin/sh", "-c", "echo one; echo two >&2"); got != "one" || err != nil {
		t.Errorf("got %q, %v, want one", got, err)
	}
	if _, err := Output(t.Context(), "/bin/sh", "-c", "echo two >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3\ntwo") {
		t.Errorf("got %v, want the status and what it says", err)
	}
}
