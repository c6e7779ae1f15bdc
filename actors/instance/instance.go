// Package instance is the persistent actor of one workflow instance: it loads the record, receives requests one after the other, makes a
// step, commits it with all that belongs to it, and replies when that is durable. It knows neither a router nor the shard's actor that
// starts and ends it (package shard), only what Env has. A Request is a type with a method run; each file has those of one subject.
package instance

import (
	"errors"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/message"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Actor is the actor of one workflow instance. Everything in it is touched only inside receive.
type Actor struct {
	env        *Env
	activation *Activation
	id         key.ID
	name       string // the id as text
	workflowID string
	shard      key.Shard

	// loaded says that the fields below are what the store has, or will have when the journal is through.
	loaded bool
	// hasOwnSteps: it has caused steps itself since a caller's event, also before it was asleep.
	hasOwnSteps bool
	// history is the JSON of all entries, joined by commas, when hasHistory. It only grows, so replies may hold on to a
	// prefix of it.
	hasHistory bool
	history    []byte
	of         *statemachine.Definition // the version that the instance runs under
	state      statemachine.Instance
	chain      statemachine.Chain
	scratch    []byte // for keys and values while a message is handled
	// stored is the record that was read before the actor began; nil when it may be out of date, and after the first
	// look.
	stored []byte
	// form is what makes the instance a form, nil for others. It is replaced, never changed.
	form       *form.Form
	creatorRow form.CreatorRow // of one that is not a form
	revision   uint64          // the highest that a draft got since the actor began
	// keyRows is about how many idempotency rows there are since the actor began to count, and keyRowsNext when to look
	// for old ones.
	keyRows, keyRowsNext int32
}

// attachment is the stored form; nil for none.
func (i *Actor) attachment() []byte {
	if i.form == nil {
		return nil
	}
	return i.form.Stored
}

// Receive is what the actors of all instances do with a message.
func Receive(ctx actor.Context) {
	if c, ok := ctx.Message().(*Call); ok { // the others are protoactor's own
		c.activation.instance.receive(c)
	}
}

// receive handles one call. A panic answers it, drops all that the instance has in memory, and goes on to the
// supervisor, which decides whether the actor goes on. What was not durable then was not acknowledged either.
func (i *Actor) receive(c *Call) {
	if !c.begin() {
		c.notApplied(failure.ErrBusy) // before the next item of its batch
		c.end()
		return
	}
	answered := false
	buffer := bufferPool.Get().(*[]byte)
	i.scratch = *buffer
	defer func() {
		if p := recover(); p != nil {
			i.env.NotePanic(p, i.workflowID, i.name)
			i.forget()
			if !answered {
				c.endCommit()
				c.answer(nil, failure.ErrInternal)
			}
			panic(p)
		}
	}()
	if err := i.run(c); err != nil {
		c.notApplied(err)
		i.refuse(c, err)
	}
	answered = true
	i.settle(buffer)
}

// forget drops all but what the instance is called, which others read.
func (i *Actor) forget() {
	i.loaded, i.hasOwnSteps, i.hasHistory = false, false, false
	i.history, i.of, i.scratch, i.stored, i.form = nil, nil, nil, nil, nil
	i.state, i.chain, i.creatorRow = statemachine.Instance{}, statemachine.Chain{}, form.CreatorRow{}
	i.revision, i.keyRows, i.keyRowsNext = 0, 0, 0
}

// scratchBytesKept is the largest scratch that is kept for the next message.
const scratchBytesKept = 64 << 10

func (i *Actor) settle(buffer *[]byte) {
	if cap(i.scratch) <= scratchBytesKept {
		*buffer = i.scratch[:0]
	}
	i.scratch = nil
	bufferPool.Put(buffer)
	i.activation.count(int64(len(i.state.Public) + len(i.state.Private) + cap(i.history) + len(i.attachment())))
}

// run carries out a call, unless its recipient does not want that any more.
func (i *Actor) run(c *Call) error {
	if c.recipient != nil {
		var turn message.Turn
		if !i.env.Store.Standalone() {
			turn = message.Turn{Shard: uint16(i.shard), Life: i.activation}
		}
		if err := c.recipient.Begin(turn); err != nil {
			return err
		}
	}
	return c.request.run(i, c)
}

// rows returns the store, in which the instance may read its own rows: all that it wrote is visible there.
func (i *Actor) rows() (*persistence.Store, error) {
	s := i.env.Store
	if i.activation == nil || i.activation.uncommitted.Load() == 0 { // it is not an actor, or at rest
		return s, nil
	}
	return s, failure.OfStore(s.AwaitVisibleIn(i.shard, i.activation.lead.Epoch))
}

// bufferPool holds the scratch of instances that handle a message.
var bufferPool = sync.Pool{New: func() any { return new([]byte) }}

// refuse answers with an error, which shows what the instance is like as any reply does: it leaves when that is
// durable.
func (i *Actor) refuse(c *Call, err error) {
	// NB: these two show nothing of the instance, and have waited for the store already.
	if i.isConfirmed() || errors.Is(err, failure.ErrUnavailable) || errors.Is(err, failure.ErrNotLeader) {
		c.answer(nil, err)
		return
	}
	c.refusal = err
	i.awaitDurable(c)
}

// ensureLoaded reads the instance's record from the store unless it is in memory.
func (i *Actor) ensureLoaded() error {
	if i.loaded {
		return nil
	}
	stored := i.stored
	i.stored = nil
	if stored == nil {
		_, err := i.rows()
		if err == nil {
			stored, err = i.env.Load(i.workflowID, i.id)
		}
		if err != nil {
			return err
		}
	}
	record, err := statemachine.ParseRecord(stored)
	if err == nil {
		if i.of, err = i.env.Catalog.Version(i.workflowID, record.Version); err == nil {
			i.state, err = i.of.Restore(i.name, record)
		}
	}
	if err == nil {
		err = i.setForm(record.Attachment)
	}
	if err != nil {
		i.env.Counts.Damaged.Add(1)
		i.env.Log.Error().Err(err).Str("workflow", i.workflowID).Str("instance", i.name).Msg("stored instance cannot be read")
		return failure.Errorf(failure.ErrExecution, "%w", err)
	}
	i.chain, i.creatorRow = record.Chain, form.CreatorRow{}
	i.history, i.hasHistory = nil, false
	i.hasOwnSteps = i.env.Steps.Has(i.id)
	i.loaded = true
	return nil
}

// deliver answers now if everything that the instance wrote is durable, and behind the journal's queue otherwise
// (promise: no reply shows state that a crash could take back).
func (i *Actor) deliver(c *Call, reply *message.Reply) {
	if i.isConfirmed() {
		c.answer(reply, nil)
		return
	}
	c.prepared = reply
	i.awaitDurable(c)
}

// isConfirmed reports whether what the instance is like may be shown as it is: all of it is durable, and no other node
// can have changed it.
func (i *Actor) isConfirmed() bool {
	return i.activation.uncommitted.Load() == 0 && i.env.Store.Standalone()
}

func (i *Actor) writes() *persistence.Batch {
	return i.env.Store.NewBatchIn(i.shard, i.activation.lead.Epoch)
}

// enqueue gives the journal a batch, and the reply that leaves when it is durable. taken is false when nothing was
// written; the call is answered even then.
func (i *Actor) enqueue(w *persistence.Batch, c *Call, reply *message.Reply) (taken bool) {
	c.prepared = reply
	c.span.Committing()
	i.activation.uncommitted.Add(1)
	if taken = i.env.Store.Append(w, c); !taken {
		c.endCommit()
		c.notApplied(failure.ErrUnavailable)
	}
	return taken
}

// awaitDurable has a call answered when everything that the instance wrote is durable.
func (i *Actor) awaitDurable(c *Call) {
	i.activation.uncommitted.Add(1)
	i.activation.barrier(c)
}
