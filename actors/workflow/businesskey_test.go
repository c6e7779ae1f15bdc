package workflow_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/actors/workflow/batch"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// shipment has keys. add stays, and close ends the instance.
const shipment = `
id: shipment
key: '${svcPublic.number}'
stateMachines: {main: {initial: open, states: {open: {on: {add: {}, close: closed}}, closed: {type: final}}}}
`

// toKey is an event to the shipment with a key, which creates it if there is none.
func toKey(business, name, retry string) *message.Event {
	e := event(boss, "shipment", "", name, "", retry)
	e.Key, e.Create = business, &message.Create{Public: value(`{"number":"` + business + `"}`)}
	return e
}

// keyFaults holds the rows of keys against the records: each instance that has not ended has the row of its key, and no
// other row is there.
func (h *harness) keyFaults() (faults []string) {
	holders, rows := map[string]key.ID{}, map[string]key.ID{}
	h.EachRow(func(k key.Parts, _, stored []byte) {
		switch k.Table {
		case "business":
			rows[k.Name] = key.ID(stored)
		case "record":
			record, err := statemachine.ParseRecord(bytes.Clone(stored))
			h.Must(err)
			if record.Key == "" || record.IsEnded() || bytes.Contains(record.States, []byte("closed")) {
				return
			}
			if other, twice := holders[record.Key]; twice {
				faults = append(faults, fmt.Sprintf("%x and %x have the key %s", other, k.ID, record.Key))
			}
			holders[record.Key] = k.ID
		}
	})
	for name, id := range holders {
		if rows[name] != id {
			faults = append(faults, fmt.Sprintf("%x has no row of its key %s", id, name))
		}
	}
	for name, id := range rows {
		if holders[name] != id {
			faults = append(faults, fmt.Sprintf("the row of %s names %x, which has not got it", name, id))
		}
	}
	return faults
}

// TestOneKeyHasOneInstance: many ask for a key at once, and the fsync of the first one hangs while the others come. One
// instance takes all events, and what creates a second one is refused.
func TestOneKeyHasOneInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 20
		h := startOn(t, storetest.NewDisk(), workflow.Options{})
		h.Publish(shipment)
		h.Disk.Hold()
		var asked sync.WaitGroup
		var mu sync.Mutex
		created, taken := 0, 0
		for n := range events {
			asked.Go(func() {
				reply, err := h.Send(context.Background(), toKey("4711", "add", ""))
				mu.Lock()
				defer mu.Unlock()
				if assert.NoError(t, err) && reply.Created {
					created++
				}
			})
			if n == events/2 {
				synctest.Wait() // the first is on its way to the disk
			}
		}
		synctest.Wait()
		for range 3 {
			asked.Go(func() {
				_, err := h.Create(context.Background(), &message.Create{Caller: boss, WorkflowID: "shipment", Public: value(`{"number":4711}`)})
				mu.Lock()
				defer mu.Unlock()
				assert.ErrorIs(t, err, failure.ErrKeyTaken)
				taken++
			})
		}
		synctest.Wait()
		mu.Lock()
		assert.Zero(t, created+taken, "answered while the fsync hangs")
		mu.Unlock()
		h.Disk.Release()
		asked.Wait()
		all := h.Instances("shipment")
		require.Len(t, all, 1)
		assert.Equal(t, uint64(events+1), all[0].Record.Sequence, "history entries of the create and all events")
		assert.Equal(t, 1, created)
		assert.Empty(t, h.keyFaults())
		h.End() // within the bubble
	})
}

// TestEveryCrashLeavesKeysWhole cuts the power while instances are created, advanced and ended by their keys: whatever
// the store has then, no key has two instances, no row is too many or too few, and what was acknowledged is there.
func TestEveryCrashLeavesKeysWhole(t *testing.T) {
	const workers, acts, crashes, keys = 4, 100, 8, 3
	disk := storetest.NewDisk()
	h := startOn(t, disk, workflow.Options{})
	h.Publish(shipment)
	type acknowledged struct {
		id       string
		sequence uint64
		before   int // how many crashes there were
	}
	var crashed []*storetest.Disk
	var mu sync.Mutex
	var done []acknowledged
	applied := map[string]int{} // events, by instance
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 38))
			for n := range acts {
				req := toKey(fmt.Sprint(r.IntN(keys)), oneOf(r, "add", "add", "close"), fmt.Sprint(worker, "-", n))
				reply, err := h.Send(context.Background(), req)
				if !assert.NoError(t, err) {
					return
				}
				again := *req
				repeated, err := h.Send(context.Background(), &again)
				assert.True(t, err == nil && repeated.InstanceID == reply.InstanceID && repeated.Sequence == reply.Sequence && repeated.Created == reply.Created,
					"repeated: got %+v, %v, want %+v", repeated, err, reply)
				mu.Lock()
				done = append(done, acknowledged{id: reply.InstanceID, sequence: reply.Sequence, before: len(crashed)})
				applied[reply.InstanceID]++
				if worker == 0 && n%(acts/crashes) == 0 {
					crashed = append(crashed, disk.AfterCrash())
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	assert.Empty(t, h.keyFaults())
	ended := 0
	for _, in := range h.Instances("shipment") {
		assert.EqualValues(t, 1+applied[in.Name], in.Record.Sequence, "entries of %s", in.Name)
		if bytes.Contains(in.Record.States, []byte("closed")) {
			ended++
		}
	}
	assert.Greater(t, ended, keys, "instances that have ended: this test shows nothing")
	for n, disk := range crashed {
		again := startOn(t, disk, workflow.Options{})
		again.Publish(shipment)
		assert.Empty(t, again.keyFaults(), "crash %d", n)
		for _, a := range done {
			reply, err := again.Look(boss, "shipment", a.id)
			assert.False(t, a.before < n && (err != nil || reply.Sequence < a.sequence), "crash %d: entry %d of %s is lost: %v", n, a.sequence, a.id, err)
		}
		for k := range keys {
			_, err := again.Send(t.Context(), toKey(fmt.Sprint(k), "add", ""))
			assert.NoError(t, err)
		}
		assert.Empty(t, again.keyFaults(), "crash %d, and after it", n)
		again.End()
	}
}

// TestALostRowOfAKeyIsNoticed is the control of the one above: a row too few lets a key have two instances, and both
// that and a row too many are found.
func TestALostRowOfAKeyIsNoticed(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(shipment)
	first, err := h.Send(t.Context(), toKey("7", "add", ""))
	h.Must(err)
	sh := h.Store.ShardOf(h.ID(first.InstanceID))
	row := key.Business(nil, sh, "shipment", "7")
	h.Overwrite(sh, row, nil)
	assert.Len(t, h.keyFaults(), 1, "a row too few")
	second, err := h.Send(t.Context(), toKey("7", "add", ""))
	h.Must(err)
	assert.NotEqual(t, first.InstanceID, second.InstanceID)
	assert.NotEmpty(t, h.keyFaults(), "two instances with one key")
	for _, id := range []string{first.InstanceID, second.InstanceID} {
		h.MustSend(boss, "shipment", id, "close", "")
	}
	assert.Empty(t, h.keyFaults())
	h.Overwrite(sh, row, bytes.Repeat([]byte{7}, len(key.ID{})))
	assert.NotEmpty(t, h.keyFaults(), "a row too many")
}

// TestABatchKeepsTheOrderOfAKey: items of a key are applied one after the other, whichever instance has it.
func TestABatchKeepsTheOrderOfAKey(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(shipment)
	b := batch.New(h.Router, nil)
	var sequences []uint64
	take := func() {
		answer, ok := b.Next()
		for ; !ok; answer, ok = b.Next() {
			<-b.Ready(false)
		}
		h.Must(answer.Err)
		sequences = append(sequences, answer.Reply.Sequence)
	}
	for _, name := range []string{"add", "add", "close", "add", "add", "close"} {
		for !b.Event(toKey("7", name, ""), nil) {
			take()
		}
	}
	for b.Len() > 0 {
		take()
	}
	assert.Equal(t, []uint64{2, 3, 4, 2, 3, 4}, sequences)
	assert.Len(t, h.Instances("shipment"), 2)
	assert.Empty(t, h.keyFaults())
}

// TestKeysHaveAnIndex, with which queries find instances, also those that have ended or had no key.
func TestKeysHaveAnIndex(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(strings.Replace(shipment, "key: '${svcPublic.number}'\n", "", 1))
	unkeyed := h.Make(boss, "shipment", `{"number":"7"}`)
	h.Publish(strings.Replace(shipment, "id: shipment\n", "id: shipment\nversion: 2\n", 1))
	ended := h.Make(boss, "shipment", `{"number":"7"}`)
	h.MustSend(boss, "shipment", ended, "close", "")
	open := h.Make(boss, "shipment", `{"number":"7"}`)
	other := h.Make(boss, "shipment", `{"number":"6"}`)
	h.AwaitIndexes()
	for i := range 20 {
		h.Make(boss, "shipment", fmt.Sprintf(`{"number":"8-%d"}`, i))
	}
	list := func(req query.Request) []string {
		req.Caller, req.WorkflowID = boss, "shipment"
		ids, end, err := h.list(req)
		h.Must(err)
		if req.Explain {
			require.True(t, end.Explain.Index != nil && *end.Explain.Index == "key", "explained: %+v", end.Explain)
		}
		return ids
	}
	assert.Equal(t, []string{ended, open}, list(query.Request{Filter: `{"key":"7"}`, Explain: true}))
	assert.Equal(t, []string{unkeyed}, list(query.Request{Filter: `{"key":{"$exists":false}}`}))
	assert.Equal(t, []string{other, ended}, list(query.Request{Filter: `{"key":{"$lt":"8"}}`, Sort: "key", Limit: 2}))
	h.CheckIndexes()
}
