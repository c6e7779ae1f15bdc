package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// proposeLoop is the proposer: it makes entries of what is queued.
func (g *Group) proposeLoop() {
	defer close(g.proposals)
	for {
		p, data := g.take()
		switch {
		case p.changes == nil:
			select {
			case <-g.wake:
			case <-g.stop:
				g.refuseQueued(0)
				return
			}
			continue
		case data == nil:
			p.asked = g.network.clock.Add(1)
			p.future = g.raft.VerifyLeader()
		default:
			g.proposed.Add(1)
			p.future = g.raft.Apply(data, 0)
		}
		g.proposals <- p
	}
}

// take returns the next changes and the data of their entry, which is nil when they write nothing.
func (g *Group) take() (p proposal, data []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.epoch, p.term = g.mu.epoch, g.mu.term
	n, size := 0, 0
	for ; n < len(g.mu.queue) && n < groupChangesMax && g.mu.queue[n].epoch == p.epoch; n++ {
		repr := len(g.mu.queue[n].change.Repr())
		if n > 0 && size+repr > groupBytesMax {
			break
		}
		size += repr
	}
	if n == 0 {
		return proposal{}, nil // what is left is of an epoch that is over, and about to be refused
	}
	p.changes = make([]Change, n)
	for i := range n {
		p.changes[i] = g.mu.queue[i].change
	}
	if size > 0 {
		data = appendWritesHead(make([]byte, 0, writesHeadBytes+size+n*binary.MaxVarintLen32), p.epoch, g.mu.revision)
		for _, c := range p.changes {
			if repr := c.Repr(); len(repr) > 0 {
				data = append(binary.AppendUvarint(data, uint64(len(repr))), repr...)
			}
		}
		g.mu.revision++
	}
	rest := copy(g.mu.queue, g.mu.queue[n:])
	clear(g.mu.queue[rest:])
	g.mu.queue = g.mu.queue[:rest]
	g.mu.inFlight += n
	return p, data
}

// finishLoop is the finisher: it answers changes in their order.
func (g *Group) finishLoop() {
	for p := range g.proposals {
		err := g.outcome(p)
		if err != nil {
			g.end(p.epoch)
		}
		for _, c := range p.changes {
			c.Done(err)
		}
		g.mu.Lock()
		g.mu.inFlight -= len(p.changes)
		g.checkDrainedLocked()
		g.mu.Unlock()
		if err != nil {
			// NB: what was queued behind it may be built on it.
			g.refuseQueued(p.epoch)
			g.fail(p.epoch)
		}
	}
}

// fail has followLeadership end an epoch in which no more changes are taken, and begin another.
func (g *Group) fail(epoch uint64) {
	select {
	case g.failed <- epoch:
	case <-g.stop:
	}
}

// outcome waits for what happened to a proposal.
func (g *Group) outcome(p proposal) error {
	err := p.future.Error()
	apply, writes := p.future.(raft.ApplyFuture)
	for err == nil && !writes && !g.network.confirmedSince(p.asked, p.term, raft.ServerID(g.o.Node), g.servers()) {
		select {
		case <-time.After(g.o.Tick / 1000): // NB: Raft counts learners here, so it may agree at once, again and again
		case <-g.stop:
			return ErrNotLed
		}
		err = g.raft.VerifyLeader().Error()
	}
	switch {
	case err == nil && writes:
		err, _ = apply.Response().(error)
		return err
	case err == nil:
		g.mu.Lock()
		defer g.mu.Unlock()
		// NB: it may lead again, after another node; and a change before this one may have been lost.
		if g.mu.epoch != p.epoch || g.raft.CurrentTerm() != p.term {
			return ErrNotLed
		}
		return nil
	case !writes, errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", ErrNotLed, err)
	case errors.Is(err, ErrRefused):
		return err
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// end takes no more changes in an epoch.
func (g *Group) end(epoch uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.epoch == epoch {
		g.mu.epoch = 0
		g.publishLocked()
	}
}

// refuseQueued answers what was queued in an epoch; 0 stands for every one.
func (g *Group) refuseQueued(epoch uint64) {
	g.mu.Lock()
	var refused []Change
	kept := g.mu.queue[:0]
	for _, q := range g.mu.queue {
		if epoch == 0 || q.epoch == epoch {
			refused = append(refused, q.change)
		} else {
			kept = append(kept, q)
		}
	}
	clear(g.mu.queue[len(kept):])
	g.mu.queue = kept
	g.mu.Unlock()
	for _, c := range refused {
		c.Done(ErrNotLed)
	}
	g.mu.Lock()
	g.checkDrainedLocked()
	g.mu.Unlock()
}

func (g *Group) checkDrainedLocked() {
	if g.mu.drained != nil && g.mu.inFlight == 0 && len(g.mu.queue) == 0 {
		select {
		case <-g.mu.drained:
		default:
			close(g.mu.drained)
		}
	}
}
