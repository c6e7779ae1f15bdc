package workflow

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// instance is the actor of one workflow instance. Everything in it is touched
// only inside receive.
type instance struct {
	router     *Router
	activation *activation
	id         key.ID
	name       string // the id as text
	workflowID string
	shard      key.Shard

	// loaded says that the fields below are what the store has, or will have
	// when the journal is through.
	loaded bool
	// hasOwnSteps: it has caused steps itself since a caller's event, also before it was asleep.
	hasOwnSteps bool
	// history is the JSON of all entries, joined by commas, when hasHistory.
	// It only grows, so replies may hold on to a prefix of it.
	hasHistory bool
	history    []byte
	of         *statemachine.Definition // the version that the instance runs under
	state      statemachine.Instance
	chain      statemachine.Chain
	scratch    []byte // for keys and values while a message is handled
	// stored is the record that the router read before the actor began; nil when it
	// may be out of date, and after the first look.
	stored []byte
	// form is what makes the instance a form, nil for others, and attachment its
	// stored bytes. Both are replaced, never changed.
	form       *form.Form
	attachment []byte
	creatorRow form.CreatorRow // of one that is no form
	revision   uint64          // the highest that a draft got since the actor began
	// keyRows is about how many idempotency rows there are since the actor
	// began to count, and keyRowsLook when to look for old ones.
	keyRows, keyRowsLook int32
}

// receive is what the actors of all instances do with a message.
func receive(ctx actor.Context) {
	if c, ok := ctx.Message().(*call); ok { // the others are protoactor's own
		c.activation.instance.receive(c)
	}
}

// receive handles one call.
func (i *instance) receive(c *call) {
	if !c.begin() {
		c.notApplied(failure.ErrBusy) // before the next item of its batch
		c.end()
		return
	}
	// A panic answers its own call and costs only this instance's memory.
	answered := false
	room := scratches.Get().(*[]byte)
	i.scratch = *room
	defer func() {
		if p := recover(); p != nil {
			i.loaded = false
			i.router.notePanic(p, i.workflowID, i.name)
			if !answered {
				c.endCommit()
				c.answer(nil, failure.ErrInternal)
			}
		}
	}()
	if err := i.run(c); err != nil {
		c.notApplied(err)
		i.refuse(c, err)
	}
	answered = true
	i.settle(room)
}

// notePanic counts and logs a panic that was caught.
func (r *Router) notePanic(p any, workflow, instance string) {
	r.metrics.panics.Add(1)
	r.log.Error().Str("workflow", workflow).Str("instance", instance).
		Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("request panicked; its instance is read again")
}

// run carries out a call, unless its recipient does not want that any more.
func (i *instance) run(c *call) error {
	if c.recipient != nil {
		var turn message.Turn
		if !i.router.store.Alone() {
			turn = message.Turn{Shard: uint16(i.shard), Life: i.activation}
		}
		if err := c.recipient.Begin(turn); err != nil {
			return err
		}
	}
	return c.request.run(i, c)
}

// rows returns the store, in which the instance may read its own rows: all that it wrote
// is visible there.
func (i *instance) rows() (*persistence.Store, error) {
	s := i.router.store
	if i.activation == nil || i.activation.uncommitted.Load() == 0 { // it is no actor, or at rest
		return s, nil
	}
	return s, failure.OfStore(s.AwaitVisibleIn(i.shard, i.activation.epoch))
}

// scratches holds the scratch of instances that handle a message.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// refuse answers with an error, which shows what the instance is like as any
// reply does: it leaves when that is durable.
func (i *instance) refuse(c *call, err error) {
	// NB: these two show nothing of the instance, and have waited for the store already.
	if i.isConfirmed() || errors.Is(err, failure.ErrUnavailable) || errors.Is(err, failure.ErrElsewhere) {
		c.answer(nil, err)
		return
	}
	c.refusal = err
	i.awaitDurable(c)
}

// load reads an instance's record from the store.
func (r *Router) load(workflowID string, id key.ID) ([]byte, error) {
	stored, err := r.store.Load(key.Record(nil, r.store.ShardOf(id), workflowID, id))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, failure.ErrNotFound
	}
	return stored, failure.OfStore(err)
}

// ensureLoaded reads the instance's record from the store unless it is in memory.
func (i *instance) ensureLoaded() error {
	if i.loaded {
		return nil
	}
	r, stored := i.router, i.stored
	i.stored = nil
	if stored == nil {
		_, err := i.rows()
		if err == nil {
			stored, err = r.load(i.workflowID, i.id)
		}
		if err != nil {
			return err
		}
	}
	record, err := statemachine.ParseRecord(stored)
	if err == nil {
		if i.of, err = r.catalog.Version(i.workflowID, record.Version); err == nil {
			i.state, err = i.of.Restore(i.name, record)
		}
	}
	if err == nil {
		err = i.setForm(record.Attachment)
	}
	if err != nil {
		r.metrics.damaged.Add(1)
		r.log.Error().Err(err).Str("workflow", i.workflowID).Str("instance", i.name).Msg("stored instance cannot be read")
		return failure.Errorf(failure.ErrExecution, "%w", err)
	}
	i.chain, i.creatorRow = record.Chain, form.CreatorRow{}
	i.history, i.hasHistory = nil, false
	i.hasOwnSteps = r.paces.Has(i.id)
	i.loaded = true
	return nil
}

// view is the instance as rights see it.
func (i *instance) view() statemachine.View {
	return statemachine.View{Instance: &i.state, Of: i.of}
}

// mayRead asks whether the caller may see the instance, and loads it.
func (i *instance) mayRead(caller *identity.Principal) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	newest, err := i.router.catalog.Newest(i.workflowID)
	if err != nil {
		return err
	}
	if !newest.MayRead(i.view(), catalog.CallerOf(caller), i.router.o.Clock()) {
		return failure.ErrNotFound
	}
	return nil
}

// loadInstance is the request of Load.
type loadInstance struct{ *message.Load }

func (req loadInstance) run(i *instance, c *call) error {
	if err := i.mayRead(req.Caller); err != nil {
		return err
	}
	reply, err := i.reply(req.WithHistory)
	if err != nil {
		return err
	}
	i.deliver(c, reply)
	return nil
}

// deliver answers now if everything that the instance wrote is durable, and
// behind the journal's queue otherwise (promise: no reply shows state that a
// crash could take back).
func (i *instance) deliver(c *call, reply *message.Reply) {
	if i.isConfirmed() {
		c.answer(reply, nil)
		return
	}
	c.prepared = reply
	i.awaitDurable(c)
}

// isConfirmed reports whether what the instance is like may be shown as it is: all of it is
// durable, and no other node can have changed it.
func (i *instance) isConfirmed() bool {
	return i.activation.uncommitted.Load() == 0 && i.router.store.Alone()
}

// writes begins a set of changes.
func (i *instance) writes() *persistence.Writes {
	return i.router.store.NewWritesIn(i.shard, i.activation.epoch)
}

// handOver gives the journal a batch, and the reply that leaves when it is durable. taken is
// false when nothing was written; the call is answered even then.
func (i *instance) handOver(w *persistence.Writes, c *call, reply *message.Reply) (taken bool) {
	c.prepared = reply
	i.activation.uncommitted.Add(1)
	if taken = i.router.store.Append(w, c); !taken {
		c.endCommit()
		c.notApplied(failure.ErrUnavailable)
	}
	return taken
}

// awaitDurable has a call answered when everything that the instance wrote is durable.
func (i *instance) awaitDurable(c *call) {
	i.activation.uncommitted.Add(1)
	i.activation.barrier(c)
}
