package instance

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/form"
	"troupe/actors/internal/businesskey"
	"troupe/actors/internal/history"
	"troupe/actors/internal/retry"
	"troupe/actors/job"
	"troupe/actors/message"
	"troupe/actors/retention"
	"troupe/actors/watch"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// change is what one call makes of an instance, on its way to the journal.
type change struct {
	outcome
	cause
	created bool
	form    *form.Form               // with created: what makes the instance a form
	of      *statemachine.Definition // that the instance gets; nil: it keeps its own
	writes  func(*persistence.Batch) // what other packages add to the commit; nil: nothing
	settled *job.Settled             // how a job has ended; nil: none has by its worker
	then    *change                  // with created: what the first event makes of the instance, in the same commit; nil: there is none
}

// outcome is what a step, or another operation of package statemachine, has come to.
type outcome struct {
	next statemachine.Instance
	// entry is unset without hasEntry. NB: a pointer into the result of a step would have the whole result on the heap.
	entry    statemachine.Entry
	hasEntry bool
	sends    []statemachine.Delivery
	delay    time.Duration // of sends
	fault    error         // why an event that nobody sent has failed
}

func outcomeOf(r *statemachine.Result) outcome {
	return outcome{next: r.Instance, entry: r.Entry, hasEntry: r.Outcome != statemachine.Ignored, sends: r.Deliveries}
}

// cause is who asked for a change, and what ends when it is done.
type cause struct {
	caller  string
	retry   message.Retry
	byKey   bool                // the instance was asked for by its business key
	decided []statemachine.Task // that the caller has completed
	gone    [][]byte            // keys of drafts and other rows that go
}

// internal is the cause of what nobody asks for.
var internal = cause{caller: statemachine.System}

// commit takes the change over and hands it to the journal with the reply that leaves when it is durable. Everything is
// one batch: all of it or nothing survives a crash.
func (i *Actor) commit(c *Call, ch *change, withHistory bool) (err error) {
	var before history.Joined // that the new entry follows
	if withHistory {
		if before, err = i.historyUpTo(i.state.Sequence); err != nil {
			return err
		}
	}
	if err := i.dropTaskDrafts(ch); err != nil {
		return err
	}
	if err := i.readCreatorRow(ch); err != nil {
		return err
	}
	// NB: a Publish waits until this batch is visible, so the indexes and feeds that are read below are those that it is for.
	c.commit = i.env.Catalog.BeginCommit(i.shard)
	indexes, err := i.env.Indexes(i.shard, i.activation.lead.Epoch, i.workflowID)
	if err == nil && (ch.created || ch.of != nil) {
		err = i.env.Catalog.MayHave(i.workflowID, cmp.Or(ch.of, i.of).Version)
	}
	if err != nil {
		c.endCommit()
		return err
	}
	w, was := i.writes(), i.state
	joined, changed := i.put(w, c, ch, before, withHistory)
	if ch.then != nil {
		joined, _ = i.put(w, c, ch.then, joined, withHistory)
	}
	if changed {
		i.putRecord(w)
	}
	earlier := &was
	if ch.created {
		earlier = nil
	}
	if i.state.Key() != "" {
		businesskey.Put(w, i.shard, i.workflowID, i.id, earlier, &i.state)
	}
	i.creatorRow.Put(w, i.spot(), i.of, &i.state)
	i.putIndexes(w, indexes, earlier)
	for _, key := range ch.gone {
		w.Delete(key)
	}
	reply := i.shown(withHistory)
	reply.Created = ch.then != nil
	reply.History, reply.HistoryFrom = joined.Text, joined.From
	if ch.retry.Key != "" {
		i.putReply(w, ch, reply)
	}
	i.loaded = true
	if !i.enqueue(w, c, reply) {
		// Nothing was written: the next call reads what there is. The waiter answers this one.
		i.loaded = false
	}
	return nil
}

// put takes one change over and writes its rows but those that commit writes once. before is the history that its entry
// follows, and joined what that is then; changed says that the record is another.
func (i *Actor) put(w *persistence.Batch, c *Call, ch *change, before history.Joined, withHistory bool) (joined history.Joined, changed bool) {
	ended, begun := ch.next.TaskChanges(&i.state)
	was, definition := i.state, i.of
	i.state = ch.next
	if ch.of != nil {
		i.countVersion(w, -1)
		i.of = ch.of
	}
	if ch.created || ch.of != nil {
		i.countVersion(w, 1)
	}
	tasksChanged := i.putTasks(w, c, ch, definition, &was, ended, begun)
	joined = before
	if ch.hasEntry {
		joined = i.extendHistory(before, i.putEntry(w, c, ch), withHistory)
		var positions []statemachine.Position
		var states data.Value
		if !ch.created {
			positions, states = i.of.Positions(&was), i.of.States(&was)
		}
		i.putForm(w, ch, states)
		i.putNodes(w, positions)
		if i.of.IsDone(&i.state) && (ch.created || !definition.IsDone(&was)) {
			retention.Put(w, i.shard, i.workflowID, i.id, i.state.UpdatedAt)
		}
	}
	if ended, begun := i.state.TimerChanges(&was); len(ended)+len(begun) > 0 {
		i.putTimers(w, c, ch, ended, begun)
	}
	i.putJobs(w, c, ch, &was)
	if len(ch.sends) > 0 {
		i.putDeliveries(w, c, &ch.outcome)
	}
	if ch.writes != nil {
		ch.writes(w)
	}
	if !ch.hasEntry && ch.caller == statemachine.System {
		i.state.State.Aside = true
	}
	// NB: without an entry, its timers change, or what is known of its children or parent.
	return joined, ch.hasEntry || tasksChanged || ch.caller == statemachine.System
}

func (i *Actor) countVersion(w *persistence.Batch, by int64) {
	i.scratch = key.Count(i.scratch[:0], i.shard, i.workflowID, i.of.Version)
	w.Add(i.scratch, by)
}

// entryBytesUsual is enough for most history entries, beside what their events brought.
const entryBytesUsual = 512

// putEntry writes one history entry, has it told to those who watch when it is durable, and returns its JSON, which is
// valid until the scratch is used again.
func (i *Actor) putEntry(w *persistence.Batch, c *Call, ch *change) (shown []byte) {
	e := &ch.entry
	i.scratch = slices.Grow(i.scratch[:0], entryBytesUsual+min(len(e.Data), history.DataBytesMax))
	at := key.Entry(i.scratch, i.shard, i.id, i.state.Sequence)
	value := e.AppendJSON(append(at, make([]byte, history.HeadBytes)...))[len(at):]
	shown = value[history.HeadBytes:]
	value = history.Complete(value, e, &i.state, ch.of == nil) // NB: nodes have other names behind a migration
	i.chain = history.Seal(value, i.chain)
	w.Set(at, value)
	var placed *key.FeedPlace
	if feeds := i.env.Watches.Feeds(i.workflowID, i.id); feeds != nil {
		n := c.withNotices()
		item := &watch.Item{
			ID: i.id, Name: i.name, Sequence: i.state.Sequence, Entry: slices.Clone(shown),
			States: i.of.States(&i.state), State: i.state, Of: i.of, Shard: i.shard,
		}
		n.feeds, n.items = feeds, append(n.items, item)
		placed = &item.Place
	}
	i.env.Changes.Announce(w, &changefeed.Row{ID: i.id, Sequence: i.state.Sequence, Workflow: i.workflowID}, placed)
	return shown
}

// putIndexes writes what a commit changes in the indexes. before is nil for a new instance.
func (i *Actor) putIndexes(w *persistence.Batch, indexes []*catalog.Index, before *statemachine.Instance) {
	if before != nil && (len(indexes) == 0 || bytes.Equal(before.Public, i.state.Public) && bytes.Equal(before.Private, i.state.Private)) {
		return
	}
	for _, ix := range indexes {
		i.scratch = ix.Update(w, i.scratch, i.shard, i.id, before, &i.state)
	}
}

func (i *Actor) putRecord(w *persistence.Batch) {
	key := key.Record(i.scratch[:0], i.shard, i.workflowID, i.id)
	both := i.of.AppendRecord(key, &i.state, i.chain, i.attachment())
	w.Set(both[:len(key)], both[len(key):])
	i.scratch = both
}

// putNodes writes the node index: rows of positions that were left go, rows of new ones come.
func (i *Actor) putNodes(w *persistence.Batch, before []statemachine.Position) {
	after := i.of.Positions(&i.state)
	for _, p := range before {
		if !slices.Contains(after, p) {
			i.scratch = i.nodeKey(p)
			w.Delete(i.scratch)
		}
	}
	for _, p := range after {
		if !slices.Contains(before, p) {
			i.scratch = i.nodeKey(p)
			w.Set(i.scratch, nil)
		}
	}
}

func (i *Actor) nodeKey(p statemachine.Position) []byte {
	return key.Node(i.scratch[:0], i.shard, i.workflowID, string(p.Node), string(p.Machine), i.id)
}

// putReply remembers the answer under the request's idempotency key. A create's row stands outside the instance,
// because a retry does not know its id. That of a request by a business key has a row outside which says whose it is.
func (i *Actor) putReply(w *persistence.Batch, ch *change, reply *message.Reply) {
	scope := i.id
	if ch.created {
		scope = key.ID{}
	}
	row := retry.First{
		Fingerprint: ch.retry.Fingerprint, Instance: i.id, Sequence: i.state.Sequence, At: i.env.Clock().UnixMilli(), Created: reply.Created,
	}
	// NB: the answer to the create of a form is its id, and the row outlives a form that is deleted.
	if ch.form == nil {
		row.Head, row.Tail = reply.AppendHead(nil), reply.AppendTail(nil)
	}
	digest := retry.DigestOf(ch.caller, ch.retry.Key)
	switch {
	case ch.byKey:
		i.forgetKeys(w)
		scope = i.id
		retry.Point(w, i.shard, digest, &row)
	case !ch.created:
		i.forgetKeys(w)
	case ch.form == nil:
		retry.KeepCreate(w, i.shard, i.id, digest, row.At)
	}
	key := key.Reply(nil, i.shard, scope, digest)
	w.Set(key, row.Append(nil))
}

func (i *Actor) log(lines []string) {
	for _, line := range lines {
		i.env.Log.Info().Str("workflow", i.workflowID).Str("instance", i.name).Msg(line)
	}
}
