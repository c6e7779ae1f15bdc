package fairness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"troupe/bench/load"
	"troupe/bench/process"
)

// measureAt carries out one attack on the home that is there, or on a new one if it leaves something behind.
func (m *measurement) measureAt(ctx context.Context, shared *home, a attack) (*phase, error) {
	if !a.alone {
		return m.measure(ctx, shared, a)
	}
	h, err := m.newHome(ctx, filepath.Join(m.Dir, a.name))
	if err != nil {
		return nil, err
	}
	p, err := m.measure(ctx, h, a)
	return p, errors.Join(err, os.RemoveAll(filepath.Dir(h.Home)))
}

func (m *measurement) measure(ctx context.Context, h *home, a attack) (result *phase, err error) {
	if err := h.Start(ctx, m.Program, m.serve...); err != nil {
		return nil, err
	}
	defer h.Stop()
	e := newHostile(h.Addr, h, m)
	p, err := m.startPolite(ctx, politeSetup{h.Addr, h.polite.token, h.polite.cookie, h.politeIDs})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	result = &phase{Attack: a.name, What: a.what}

	if a.before != nil {
		a.before(ctx, e)
	}
	if _, err := p.do(politeOrder{}); err != nil { // who was there before has a connection
		return nil, err
	}
	if a.aligned {
		lead := m.warmUp + m.duration/4
		load.Sleep(ctx, time.Until(time.Now().Add(lead).Truncate(time.Minute).Add(time.Minute-lead)))
	}
	attacking, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { a.run(attacking, e) })
	beside.Go(func() { result.PeakBytes = process.PeakBytes(attacking, h.PID()) })
	begun := time.Now()
	used, err1 := process.ProcessorTime(h.PID())
	got, err := p.do(politeOrder{m.rate, m.warmUp, m.duration})
	later, err2 := process.ProcessorTime(h.PID())
	result.Cores = (later - used).Seconds() / time.Since(begun).Seconds()
	stop()
	beside.Wait()
	e.close()
	after, err3 := p.do(politeOrder{})
	if err := errors.Join(err, err3); err != nil {
		return nil, err
	}
	result.Recovered = load.Duration(after.Recovered)
	select {
	case <-h.Ended():
		result.Died = h.LastWords()
	default:
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("processor time: %w", err)
		}
	}
	result.Hostile = e.got.Outcome(m.duration).Errors
	result.All, result.Kinds = got.All, got.Kinds
	return result, ctx.Err()
}

func newHostile(addr string, h *home, m *measurement) *hostile {
	over := newLink(linkMegabits)
	stranger := newCaller(addr, hostileAddr, m.loops, over)
	e := &hostile{
		caller: stranger.with(h.hostile.token, h.hostile.cookie), stranger: stranger, neighbour: newCaller(addr, politeAddr, m.loops, over),
		records: h.hostileIDs, hot: h.hot, loops: m.loops, connections: m.connections, tasks: m.tasks,
	}
	e.budget.Store(budgetMax)
	return e
}
