package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"troupe/bench/process"
	"troupe/bench/record"
	"troupe/gateway/client"
)

func main() { os.Exit(process.Main("byitself", run)) }

// measurement is one run of the command.
type measurement struct {
	out, errs                                    io.Writer
	pending, storm, rows, children, tasks, kills int
	dir, program                                 string

	text strings.Builder // of the record
}

func run(ctx context.Context, args []string, out, errs io.Writer) (err error) {
	m := &measurement{out: out, errs: errs}
	var to string
	flags := flag.NewFlagSet("byitself", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.IntVar(&m.pending, "pending", 1_000_000, "timers that are not due; 0 leaves that out")
	flags.IntVar(&m.storm, "storm", 100_000, "timers that are due at once; 0 leaves that out")
	flags.IntVar(&m.rows, "rows", 100_000, "deliveries; 0 leaves that out")
	flags.IntVar(&m.children, "children", 20_000, "instances with a child each; 0 leaves that out")
	flags.IntVar(&m.tasks, "tasks", 1_000_000, "open tasks; 0 leaves that out")
	flags.IntVar(&m.kills, "kills", 5, "how often the server is killed while deliveries leave, and while there are children")
	flags.StringVar(&to, "o", "", "the file for the record")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", process.ErrUsage, err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: there are flags only", process.ErrUsage)
	}
	if m.dir, err = os.MkdirTemp("", "byitself"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.dir)) }()
	if m.program, err = process.Build(ctx, m.dir); err != nil {
		return err
	}
	facts, err := record.Collect(m.dir)
	if err != nil {
		return err
	}
	m.text.WriteString(facts.Header("What instances do by themselves", "go run ./bench/byitself "+strings.Join(args, " ")))
	for _, part := range []struct {
		count int
		run   func(context.Context) error
	}{{m.pending, m.runPending}, {m.storm, m.runStorm}, {m.rows, m.runOutbox}, {m.children, m.runChildren}, {m.tasks, m.runTasks}} {
		if part.count > 0 {
			if err := part.run(ctx); err != nil {
				return err
			}
		}
	}
	_, _ = io.WriteString(out, m.text.String())
	if to != "" {
		return os.WriteFile(to, []byte(m.text.String()), 0o644)
	}
	return nil
}

// definitions are the workflows of all homes: one that waits for a time that it is given, one that waits for nothing, one
// that sends, and one that has a child until that answers.
var definitions = map[string]string{
	"waiting.yaml": "id: waiting\nstateMachines: {main: {initial: open, states: {open: {after: {'${svcPublic.due}': late}, on: {go: late}}, late: {type: final}}}}\n",
	"resting.yaml": "id: resting\nstateMachines: {main: {initial: open, states: {open: {on: {go: {}, end: late}}, late: {type: final}}}}\n",
	"sending.yaml": "id: sending\nwebhooks: {to: {retry: {limit: 100, delay: PT1S, maxDelay: PT2S}}}\n" +
		"stateMachines: {main: {initial: open, states: {open: {on: {go: {actions: [{webhook: {to: to, body: {n: '${event.data.n}', of: '${instance.id}'}}}]}, end: late}}, late: {type: final}}}}\n",
	"asking.yaml": "id: asking\nstateMachines: {main: {initial: open, states: {open: {invoke: {workflow: answering, data: {svcPublic: {of: '${instance.id}'}}, onDone: heard}, on: {leave: left}}, " +
		"heard: {type: final}, left: {type: final}}}}\n",
	"deciding.yaml": "id: deciding\nstateMachines: {main: {initial: open, states: {open: {task: {title: 'Decide ${svcPublic.n}', due: '${svcPublic.due}'}, " +
		"on: {go: {target: done, allow: {roles: [clerk]}}}}, done: {type: final}}}}\n",
	"answering.yaml": "id: answering\nstateMachines: {main: {initial: open, states: {open: {after: {PT3S: answered}}, answered: {type: final}}}}\n",
}

// server is a server on a home of its own.
type server struct {
	*process.Process
	home, admin, token string
	*client.Client
}

// start starts a server on a new home, or again on the one that s has.
func (m *measurement) start(ctx context.Context, s *server, settings string) (ready time.Duration, err error) {
	if s.home == "" {
		if s.home, err = os.MkdirTemp(m.dir, "home"); err != nil {
			return 0, err
		}
		files := map[string]string{"identity.yaml": "roles: [{id: clerk, privileges: [mod-workflows]}, {id: a}, {id: b}, {id: c}, {id: d}]\nusers: [{id: ann, roles: [clerk, a, b, c, d]}]\n", "troupe.yaml": settings}
		for name, text := range definitions {
			files[filepath.Join("workflows", name)] = text
		}
		for name, text := range files {
			path := filepath.Join(s.home, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				return 0, err
			}
		}
	}
	if s.admin, err = process.FreeAddr(); err != nil {
		return 0, err
	}
	begun := time.Now()
	if s.Process, err = process.Start(ctx, filepath.Join(s.home, "log"), m.program, "serve", "--home", s.home, "--admin", s.admin, "--log-level", "warn", "--commit-wait-max", "2m"); err != nil {
		return 0, err
	}
	ready = time.Since(begun)
	if s.token == "" {
		tokens, err := process.Tokens(ctx, m.program, s.home, []string{"ann"})
		if err != nil {
			return 0, err
		}
		s.token = tokens["ann"]
	}
	s.Client, err = client.New(client.Options{Address: "http://" + s.Addr, Token: s.token, RetryMax: 50, CallMax: 5 * time.Minute})
	return ready, err
}
