package instances

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"sync"

	"troupe/actors/cluster/peer"
	"troupe/actors/message"
	"troupe/actors/workflow/batch"
	"troupe/gateway/internal/forward"
	"troupe/gateway/internal/kernel"
)

// Items whose shard another node leads go there as parts of the batch, one part of a shard at a time
// (gateway/DESIGN.md, "Batches in a cluster"):
//
//	batch ── items of a shard ──► who leads? ──► another node ──► its answers, as they come
//	  ▲                             ▲    │             │
//	  ├────── this node leads ──────┼────┘             │
//	  └──── answered                └── 421, or no answer to what has a key

// keepKey keeps the key of a batch, on whichever node leads its shard.
func (g *Group) keepKey(x *kernel.Exchange, retry message.Retry) error {
	err := g.Workflows.KeepKey(x.Caller, retry)
	shard, ok := forward.Elsewhere(x, err)
	if !ok || g.Forwarder.Peers == nil {
		return err
	}
	from, err := forward.Introduce(x)
	if err != nil {
		return err
	}
	from.Part = &kernel.Part{Key: retry.Key, Keep: hex.EncodeToString(retry.Fingerprint[:])}
	ctx, cancel := context.WithTimeout(x.Kernel.Requests, x.Kernel.Options.LeaderWaitMax)
	defer cancel()
	f := forward.Forwarding{Forwarder: g.Forwarder, X: x, Shard: shard}
	for {
		to, err := f.Leader(ctx)
		switch {
		case err != nil:
			return err
		case to.Transport == nil:
			err = g.Workflows.KeepKey(x.Caller, retry)
			if shard, ok := forward.Elsewhere(x, err); ok {
				f.Shard = shard
				continue
			}
			return err
		}
		answer, err := g.Forwarder.SendItems(ctx, x, to, from, nil)
		if err != nil || answer.Status() == http.StatusMisdirectedRequest { // NB: to keep a key twice is to keep it once
			answer.Close()
			continue
		}
		cause := answer.Refusal()
		answer.Close()
		return cause
	}
}

// batchForwarder sends the items of one batch. It implements batch.Forwarder.
type batchForwarder struct {
	forwarder *forward.Forwarder
	x         *kernel.Exchange
	key       string // of the whole batch
	ctx       context.Context
	cancel    context.CancelFunc
	running   sync.WaitGroup
}

func newBatchForwarder(x *kernel.Exchange, to *forward.Forwarder, key string) *batchForwarder {
	f := &batchForwarder{forwarder: to, x: x, key: key}
	f.ctx, f.cancel = context.WithCancel(x.Kernel.Requests)
	return f
}

// stop gives up what is on its way. NB: the exchange goes back to its pool behind it.
func (f *batchForwarder) stop() {
	f.cancel()
	f.running.Wait()
}

// Forward implements batch.Forwarder. It is called on the goroutine of the batch, which changes the caller.
func (f *batchForwarder) Forward(shard uint16, items []*batch.Item, end func(here bool)) {
	from, err := forward.Introduce(f.x)
	if err != nil {
		answerAll(items, err)
		end(false)
		return
	}
	p := &outgoing{batchForwarder: f, from: from, to: forward.Forwarding{Forwarder: f.forwarder, X: f.x, Shard: shard}, items: items}
	f.running.Go(func() { end(p.run()) })
}

func answerAll(items []*batch.Item, err error) {
	for _, m := range items {
		m.Answered(nil, err)
	}
}

type outgoing struct {
	*batchForwarder
	from  *kernel.Sender
	to    forward.Forwarding
	items []*batch.Item // that have no answer, in their order
}

// run tries until all items are answered, or it is this node that leads.
func (p *outgoing) run() (here bool) {
	ctx, cancel := context.WithTimeout(p.ctx, p.x.Kernel.Options.LeaderWaitMax)
	defer cancel()
	for len(p.items) > 0 {
		to, err := p.to.Leader(ctx)
		switch {
		case err != nil:
			answerAll(p.items, err)
			return false
		case to.Transport == nil:
			return true
		}
		p.send(to)
	}
	return false
}

// send sends the items once, and keeps those that have to be sent again.
func (p *outgoing) send(to forward.Peer) {
	p.from.Part = &kernel.Part{Key: p.key}
	for _, m := range p.items {
		if p.key != "" {
			p.from.Part.Numbers = append(p.from.Part.Numbers, m.Number)
		}
	}
	answer, err := p.forwarder.SendItems(p.ctx, p.x, to, p.from, p.items)
	defer answer.Close() //nolint:staticcheck // it has to be closed also with an error
	switch {
	case errors.Is(err, peer.ErrNotSent):
	case errors.Is(err, peer.ErrTooLarge):
		answerAll(p.items, forward.TooLarge(err))
		p.items = nil
	case err != nil:
		p.lose()
	case answer.Status() == http.StatusOK:
		p.take(answer)
	case answer.Status() == http.StatusMisdirectedRequest, answer.Status() == http.StatusServiceUnavailable:
		// NB: without room there the items wait, as they do here.
	default:
		answerAll(p.items, answer.Refusal())
		p.items = nil
	}
}

// take takes the results. NB: what an answer that breaks off does not say is not known.
func (p *outgoing) take(answer *forward.PartAnswer) {
	again := p.items[:0]
	for i, m := range p.items {
		text, status, err := answer.Next()
		if err != nil {
			p.items = p.items[i:]
			p.lose()
			p.items = append(again, p.items...)
			return
		}
		switch {
		case status == http.StatusMisdirectedRequest:
			if m.NotDone() {
				again = append(again, m)
			}
		case status == http.StatusOK:
			m.AnsweredBy(text, nil)
		default:
			m.AnsweredBy(text, forward.CauseOf(status))
		}
	}
	p.items = again
}

func (p *outgoing) lose() {
	again := p.items[:0]
	for _, m := range p.items {
		if m.Lost() {
			again = append(again, m)
		}
	}
	p.items = again
}
