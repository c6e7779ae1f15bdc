package fairness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
)

// politeCommand is the argument by which this program is the polite user.
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

// politeReply is what became of an order.
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
