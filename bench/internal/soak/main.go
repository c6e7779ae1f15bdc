// Package soak keeps a small server busy for an hour, and shows what time changes (bench/README.md, "An hour on a small
// machine"). The server has so much memory, by a control group, and so much disk, by a file system in a file: both take
// root, on Linux. Instances end and are deleted by their retention all the time; without that the disk would fill.
package soak

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
)

// Commands are the measurement.
var Commands = []harness.Command{{Name: "soak", About: "an hour with little memory and disk, and how p99 drifts", Run: run}}

type measurement struct {
	*harness.Harness
	length, every time.Duration
	rate          float64
	memory, disk  int64 // MiB
}

func run(ctx context.Context, h *harness.Harness) error {
	m := &measurement{Harness: h}
	h.Flags.DurationVar(&m.length, "for", time.Hour, "how long the load lasts")
	h.Flags.DurationVar(&m.every, "every", 5*time.Minute, "the time that a row of the table is about")
	h.Flags.Float64Var(&m.rate, "rate", 300, "requests per second")
	h.Flags.Int64Var(&m.memory, "memory", 512, "memory of the server in MiB")
	h.Flags.Int64Var(&m.disk, "disk", 2048, "disk of the server in MiB")
	if err := h.Parse(""); err != nil {
		return err
	}
	if m.every <= 0 || m.length < 2*m.every || m.rate <= 0 || m.memory < 128 || m.disk < 1024 {
		return harness.Wrong("-for is at least twice -every, -rate is above 0, -memory is at least 128 and -disk at least 1024")
	}
	h.Title = fmt.Sprintf("%s with %d MiB of memory and %d MiB of disk", m.length, m.memory, m.disk)
	return h.Measure(ctx, m.run)
}

const clerk = "clerk"

var (
	//go:embed request.yaml
	definition []byte
	//go:embed scenario.yaml
	scenario []byte
	//go:embed troupe.yaml
	settings []byte
)

// warmUp is longer than the retention of request.yaml: the store has its size when the window begins.
const warmUp = 3 * time.Minute

func (m *measurement) run(ctx context.Context) (text string, err error) {
	s, err := load.ParseScenario("scenario.yaml", scenario, func(string) ([]byte, error) { return definition, nil })
	if err != nil {
		return "", err
	}
	if err := m.Build(ctx); err != nil {
		return "", err
	}
	disk, unmount, err := m.mount(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unmount()) }()
	confined, group, err := m.confine()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.Remove(group)) }()
	home := filepath.Join(disk, "home")
	if err := s.WriteHome(home); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(home, "troupe.yaml"), settings, 0o644); err != nil {
		return "", err
	}
	server, tokens, err := process.Serve(ctx, confined, home, []string{clerk})
	if err != nil {
		return "", err
	}
	defer server.Stop()
	w := watchOver(server.PID(), disk)
	w.errs = m.Errs
	defer w.stop()
	result, err := load.Run(ctx, load.Options{
		Addr: server.Addr, Token: tokens[clerk], Scenario: s, Minimal: true, PID: server.PID(),
		Connections: 32, Instances: 2000, Mix: load.Mix{load.Event: 90, load.Read: 9, load.Query: 1},
		Rate: m.rate, WarmUp: min(warmUp, m.length), Duration: m.length, Every: m.every, Tick: w.tick,
	})
	if result == nil {
		return "", errors.Join(err, server.Failure())
	}
	text = w.report(result, peakOf(group), m.memory)
	if err != nil { // it was interrupted
		return text, err
	}
	if result.ErrorsTotal > 0 {
		err = fmt.Errorf("errors: %s", harness.Counts(result.Errors))
	}
	server.Stop()
	verified, verr := process.Output(ctx, m.Program, "store", "verify", "--home", home)
	return text + "\n`troupe store verify` after it: " + strings.ReplaceAll(verified, "\n", "; ") + "\n", errors.Join(err, verr)
}

// mount makes a file system of the size that the disk has, and mounts it.
func (m *measurement) mount(ctx context.Context) (disk string, unmount func() error, err error) {
	image := filepath.Join(m.Dir, "image")
	disk = filepath.Join(m.Dir, "disk")
	f, err := os.Create(image)
	if err != nil {
		return "", nil, err
	}
	if err := errors.Join(f.Truncate(m.disk<<20), f.Close(), os.Mkdir(disk, 0o755)); err != nil {
		return "", nil, err
	}
	if _, err := process.Output(ctx, "mkfs.ext4", "-q", "-m", "0", image); err != nil {
		return "", nil, err
	}
	if _, err := process.Output(ctx, "mount", "-o", "loop", image, disk); err != nil {
		return "", nil, fmt.Errorf("a disk of its own takes root: %w", err)
	}
	return disk, func() error {
		_, err := process.Output(context.WithoutCancel(ctx), "umount", disk)
		return err
	}, nil
}

// confine returns a program that is the server in a control group that has the memory, and the group.
func (m *measurement) confine() (program, group string, err error) {
	bytes := strconv.FormatInt(m.memory<<20, 10)
	group, err = harness.Group("memory", "troupe-soak-"+strconv.Itoa(os.Getpid()),
		[]harness.Setting{{"memory.limit_in_bytes", bytes}}, []harness.Setting{{"memory.max", bytes}})
	if err != nil {
		return "", "", fmt.Errorf("a bound on memory takes root: %w", err)
	}
	program = filepath.Join(m.Dir, "confined")
	script := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs || exit 1\nGOMEMLIMIT=%dMiB exec %s \"$@\"\n", group, m.memory*9/10, m.Program)
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		return "", "", errors.Join(err, os.Remove(group))
	}
	return program, group, nil
}

// peakOf is the most memory that a group had, the kernel's cache of its files included; 0 when it cannot be read.
func peakOf(group string) int64 {
	for _, name := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
		if text, err := os.ReadFile(filepath.Join(group, name)); err == nil {
			bytes, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			return bytes
		}
	}
	return 0
}
