package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"troupe/bench/process"
)

// started is a system that runs, with its worker.
type started struct {
	dir       string             // for its files, and empty at first
	program   string             // that of the system, or the folder of its programs
	processes []*process.Process // in the order in which they were started
	closers   []func()
	// run brings orders to their end, as many as the system has in a batch, and checks the receipts that it returns.
	run func(ctx context.Context, orders []Order) error
	// check, if not nil, looks at the end whether so many orders are stored as done.
	check func(ctx context.Context, done int) error
}

// begin starts a program of the system.
func (s *started) begin(ctx context.Context, as *syscall.SysProcAttr, program string, args ...string) error {
	log := filepath.Join(s.dir, filepath.Base(program)+strconv.Itoa(len(s.processes))+".log")
	p, err := process.Run(ctx, log, as, program, args...)
	if err == nil {
		s.processes = append(s.processes, p)
	}
	return err
}

// worker starts this program as the worker of a system.
func (s *started) worker(ctx context.Context, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return s.begin(ctx, nil, self, append([]string{"worker"}, args...)...)
}

// ready tries something until it works, for a minute, while all processes run.
func (s *started) ready(ctx context.Context, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		for _, p := range s.processes {
			if failure := p.Failure(); failure != nil {
				return failure
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends all processes, the last first.
func (s *started) stop() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	for i := len(s.processes) - 1; i >= 0; i-- {
		s.processes[i].Stop()
	}
}

// processorTime is what the processes and all below them have used, with what those below used that have ended.
func (s *started) processorTime() (used time.Duration, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	below := map[int][]procfs.ProcStat{} // by parent
	var tree []procfs.ProcStat
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil {
			continue // it has ended
		}
		below[stat.PPID] = append(below[stat.PPID], stat)
		for _, own := range s.processes {
			if own.PID() == stat.PID {
				tree = append(tree, stat)
			}
		}
	}
	if len(tree) != len(s.processes) {
		return 0, fmt.Errorf("of %d processes %d run", len(s.processes), len(tree))
	}
	const ticksPerSecond = 100 // of /proc, on all that Go runs on
	for i := 0; i < len(tree); i++ {
		tree = append(tree, below[tree[i].PID]...)
		used += time.Duration((tree[i].CPUTime() + float64(tree[i].CUTime+tree[i].CSTime)/ticksPerSecond) * float64(time.Second))
	}
	return used, nil
}

// newHTTP is a client that keeps its connections.
func newHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1 << 10, DisableCompression: true}}
}
