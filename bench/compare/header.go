package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// facts is what a record says about where it was made.
type facts struct {
	at        time.Time
	processor string
	kernel    string
	load      string // load average before the first run
	sync      string // what one fsync costs
	commit    string
}

// findFacts looks around. What cannot be found out is "unknown".
func findFacts(dir string) (*facts, error) {
	f := &facts{
		at:        time.Now().UTC(),
		processor: "unknown",
		kernel:    firstLine("/proc/sys/kernel/osrelease"),
		load:      firstLine("/proc/loadavg"),
		commit:    commit(),
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				f.processor = strings.TrimSpace(value)
				break
			}
		}
	}
	var err error
	f.sync, err = syncCost(dir)
	return f, err
}

func firstLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	return string(line)
}

// commit names what is measured, and says when it is not exactly that commit.
func commit() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	id, err := output(ctx, "git", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changed, err := output(ctx, "git", "status", "--porcelain"); err != nil || changed != "" {
		id += " with changes"
	}
	return id
}

// syncCost measures what it costs to make 4 KiB durable: the one figure that
// tells disks apart here.
func syncCost(dir string) (text string, err error) {
	name := filepath.Join(dir, "sync")
	file, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(name)) }()
	block := make([]byte, 4<<10)
	var took []time.Duration
	for range 200 {
		begun := time.Now()
		if _, err := file.Write(block); err != nil {
			return "", err
		}
		if err := file.Sync(); err != nil {
			return "", err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return fmt.Sprintf("p50 %d µs, p99 %d µs", took[100].Microseconds(), took[198].Microseconds()), nil
}

// header is the part of a record above the tables.
func (p *plan) header(f *facts) string {
	o := p.load
	loop := "closed"
	if o.Rate > 0 {
		loop = fmt.Sprintf("open, %g requests/s", o.Rate)
	}
	return fmt.Sprintf(`# Comparison of %s

| | |
|---|---|
| Command | %s |
| Commit | %s |
| Machine | %s, %d cores, shared by servers and load generator |
| System | %s/%s, kernel %s, %s |
| Write and sync of 4 KiB | %s |
| Load average before | %s |
| Load | %s loop, %s, %d new instances a run with %d events before, %d rounds of %s after %s |
`,
		f.at.Format("2006-01-02 15:04 UTC"), "`go run ./bench/compare "+strings.Join(p.args, " ")+"`", f.commit,
		f.processor, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, f.kernel, runtime.Version(), f.sync, f.load,
		loop, o.Mix, o.Instances, o.Preload, p.rounds, o.Duration, o.WarmUp)
}
