// Package fairness shows what one hostile user, or somebody without a credential, takes from a polite one
// (bench/README.md, "Two users, one of them hostile"). Connections are opened to the server that was started and to
// nothing else; their number and the time are bounded. The polite user's come from 127.0.0.1, the hostile one's from
// 127.0.0.2, so that limits by address can be seen.
package fairness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
)

// Commands are the measurement, and the polite user, as which the program starts itself.
var Commands = []harness.Command{
	{Name: "fairness", About: "what a hostile user takes from a polite one", Run: run},
	{Name: politeCommand, Run: bePolite},
}

func run(ctx context.Context, h *harness.Harness) error {
	m, err := parse(h)
	if err != nil {
		return err
	}
	return h.Measure(ctx, m.run)
}

func parse(h *harness.Harness) (*measurement, error) {
	m, flags := &measurement{Harness: h}, h.Flags
	names := flags.String("attacks", "", "names of attacks with commas; empty is all. The first is always nobody")
	flags.DurationVar(&m.duration, "duration", 5*time.Second, "measured time of each attack, at most 1m")
	flags.DurationVar(&m.warmUp, "warmup", time.Second, "time under attack before it")
	flags.Float64Var(&m.rate, "rate", 100, "the polite user's requests per second")
	flags.IntVar(&m.loops, "loops", 32, "hostile requests at a time")
	flags.IntVar(&m.connections, "connections", 300, "hostile connections that are held, at most 2000")
	flags.IntVar(&m.records, "records", 3000, "hostile instances of 4 KiB that are made before")
	flags.IntVar(&m.tasks, "tasks", 50_000, "tasks that the polite user may not read, and events of a long history")
	flags.StringVar(&m.Program, "program", "", "the build that is measured; empty builds this tree")
	if err := h.Parse("[-- flags of troupe serve]"); err != nil {
		return nil, err
	}
	m.serve = append([]string{"--connections-max", "200", "--drain-max", "1s"}, flags.Args()...)
	if m.duration <= 0 || m.duration > time.Minute || m.warmUp < 0 || m.rate <= 0 || m.loops < 1 || m.records < 1 || m.tasks < 1 ||
		m.connections < 1 || m.connections > 2000 {
		return nil, harness.Wrong("numbers must be positive and within their bounds")
	}
	all := attacks()
	m.attacks = all
	if *names != "" {
		m.attacks = all[:1]
		for name := range strings.SplitSeq(*names, ",") {
			i := slices.IndexFunc(all, func(a attack) bool { return a.name == name })
			if i < 0 {
				return nil, harness.Wrong("there is no attack %q", name)
			}
			if i > 0 {
				m.attacks = append(m.attacks, all[i])
			}
		}
	}
	return m, nil
}

func (m *measurement) run(ctx context.Context) (string, error) {
	if err := m.Build(ctx); err != nil {
		return "", err
	}
	h, err := m.newHome(ctx, filepath.Join(m.Dir, "shared"))
	if err != nil {
		return "", err
	}
	var phases []*phase
	for _, a := range m.attacks {
		p, err := m.measureAt(ctx, h, a)
		if err != nil {
			return "", fmt.Errorf("%s: %w", a.name, err)
		}
		phases = append(phases, p)
		fmt.Fprintf(m.Errs, "%-24s %s\n", a.name, p.line(phases[0]))
	}
	m.Title = "Fairness"
	m.Rows = [][2]string{
		{"Server", "`troupe serve " + strings.Join(m.serve, " ") + "`"},
		{"Load", fmt.Sprintf("open loop, %g requests/s of the polite user, %s after %s for each attack; %d hostile requests at a time, %d connections held, %d hostile records of 4 KiB; the hostile one comes over %d Mbit/s each way",
			m.rate, m.duration, m.warmUp, m.loops, m.connections, m.records, linkMegabits)},
	}
	return report(phases), nil
}

const politeCommand = "polite"

type politeSetup struct {
	Addr, Token, Cookie string
	IDs                 []string
}

// politeOrder is what it is told then, again and again. Without a duration it is asked how long it takes until it is answered.
type politeOrder struct {
	Rate             float64
	WarmUp, Duration time.Duration
}

type politeReply struct {
	Recovered time.Duration
	Kinds     map[string]*harness.Outcome
	All       load.Summary
}

// politeApart is the polite user in a process of its own: the hostile client keeps this one busy, and what the polite user
// waits for must be the server.
type politeApart struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func (m *measurement) startPolite(ctx context.Context, setup politeSetup) (*politeApart, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &politeApart{cmd: exec.CommandContext(ctx, self, politeCommand)}
	p.cmd.Stderr = m.Errs
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(p.in).Encode(setup); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *politeApart) do(order politeOrder) (reply politeReply, err error) {
	if err = json.NewEncoder(p.in).Encode(order); err == nil {
		err = p.out.Decode(&reply)
	}
	if err != nil {
		err = fmt.Errorf("the polite user: %w", err)
	}
	return reply, err
}

func (p *politeApart) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// bePolite is that process. It returns when there are no more orders.
func bePolite(ctx context.Context, h *harness.Harness) error {
	orders, replies := json.NewDecoder(os.Stdin), json.NewEncoder(h.Out)
	var setup politeSetup
	if err := orders.Decode(&setup); err != nil {
		return err
	}
	p := newPolite(setup.Addr, &home{polite: credentials{setup.Token, setup.Cookie}, politeIDs: setup.IDs})
	defer p.close()
	for {
		var order politeOrder
		switch err := orders.Decode(&order); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		var reply politeReply
		if order.Duration == 0 {
			reply.Recovered = p.recovered(ctx)
		} else {
			p.run(ctx, order.Rate, time.Now(), order.WarmUp, order.Duration)
			reply.All, reply.Kinds = p.all.Outcome(order.Duration).Summary, map[string]*harness.Outcome{}
			for i, k := range kinds {
				reply.Kinds[k.name] = p.observed[i].Outcome(order.Duration)
			}
		}
		if err := replies.Encode(reply); err != nil {
			return err
		}
	}
}
