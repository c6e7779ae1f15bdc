package inventory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/inventory"
	"troupe/actors/message"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
	"troupe/statemachine"
)

const request = `
id: request
indexes: [svcPublic.n]
webhooks: {hook: }
create: {svcPublic: {type: object}}
stateMachines:
  main:
    initial: draft
    states:
      draft:
        entry: [{webhook: {to: hook, body: 1}}]
        after: {PT1H: sent}
        on: {note: {actions: [{assign: {svcPublic.n: '${event.data.n}'}}]}, submit: sent, fail: {actions: [{assign: {svcPublic.n: 1}}]}}
      sent: {task: {for: {users: [mary]}}, on: {done: end}}
      end: {type: final}
`

// walk has nothing but what its history keeps.
const walk = `
id: walk
create: {svcPublic: false, svcPrivate: false}
context: {svcPublic: {n: 0}}
stateMachines:
  main:
    initial: a
    states:
      a: {on: {go: {target: b, actions: [{assign: {svcPublic.n: '${svcPublic.n + event.data.n}', svcPublic.by: '${user.id}', svcPublic.at: '${now}'}}]}}}
      b: {on: {back: a}}
`

// verify returns the damages that it finds.
func verify(t *testing.T, r *workflowtest.Router) (inventory.Report, []string) {
	t.Helper()
	lines := []string{}
	report, err := inventory.Verify(t.Context(), &inventory.Options{
		Store: r.Store, Catalog: r.Catalog, Pace: func(ctx context.Context, _ int) error { return ctx.Err() },
		Damage: func(line string) { lines = append(lines, line) }, Say: func(string) {},
	})
	require.NoError(t, err)
	return report, lines
}

func filled(t *testing.T) *workflowtest.Router {
	t.Helper()
	r := workflowtest.Start(t, workflowtest.Options{})
	r.Publish(request, walk)
	john, mary := workflowtest.John, workflowtest.Mary
	for n := range 3 {
		id := r.Make(john, "request", `{"n":1}`)
		r.MustSend(john, "request", id, "note", `{"n":2}`, "key")
		if n > 0 {
			r.MustSend(john, "request", id, "submit", "")
		}
		if n > 1 {
			r.MustSend(mary, "request", id, "done", "")
		}
		id = r.Make(john, "walk", "")
		r.MustSend(john, "walk", id, "go", `{"n":3}`)
		r.MustSend(mary, "walk", id, "back", "")
	}
	require.Eventually(t, func() bool {
		all := *r.Catalog.Indexes()
		return len(all["request"]) == 1 && all["request"][0].Whole()
	}, workflowtest.CommitWaitMax, 1e6)
	require.NoError(t, r.Store.AwaitDurable())
	return r
}

// TestVerifyFindsWhatIsMissingAndWhatIsTooMuch takes each row of a store away, changes its value, and has rows of instances that are not
// there: each is found, and with the row back nothing is.
func TestVerifyFindsWhatIsMissingAndWhatIsTooMuch(t *testing.T) {
	r := filled(t)
	report, lines := verify(t, r)
	require.Empty(t, lines)
	assert.EqualValues(t, 6, report.Instances)
	assert.EqualValues(t, 6, report.Replayed)
	assert.Zero(t, report.NotReplayed)
	type row struct{ k, value []byte }
	var rows []row
	require.NoError(t, r.Store.Scan(nil, func(k, value []byte) error {
		rows = append(rows, row{slices.Clone(k), slices.Clone(value)})
		return nil
	}))
	// A row of these may be missing: nothing follows from it, and it follows from nothing.
	free := []string{"draft", "reply", "activity", "feed", "list", "setting", "definition"}
	// What is in these nothing else says.
	open := append([]string{"incident"}, free...)
	tried := map[string]int{}
	for _, x := range rows {
		k, ok := key.Parse(x.k)
		require.True(t, ok)
		if k.Shard == key.Meta || k.Table == "count" {
			continue
		}
		tried[k.Table]++
		if !slices.Contains(free, k.Table) {
			r.Overwrite(k.Shard, x.k, nil)
			_, lines := verify(t, r)
			assert.NotEmpty(t, lines, "%s is missing", k)
		}
		if !slices.Contains(open, k.Table) {
			spoilt := append(slices.Clone(x.value), 'x')
			if len(x.value) > 0 {
				spoilt = append(slices.Clone(x.value[:len(x.value)-1]), x.value[len(x.value)-1]^1)
			}
			r.Overwrite(k.Shard, x.k, spoilt)
			_, lines := verify(t, r)
			assert.NotEmpty(t, lines, "%s has another value", k)
		}
		if k.Table == "timer" {
			r.Overwrite(k.Shard, x.k, append(slices.Clone(x.value), " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"...))
			_, lines := verify(t, r)
			assert.Empty(t, lines, "%s is in a trace", k)
		}
		r.Overwrite(k.Shard, x.k, x.value)
	}
	for _, table := range []string{"record", "entry", "node", "index", "timer", "task", "work", "delivery", "attempt", "list", "reply"} {
		assert.NotZero(t, tried[table], "the store has a row of the kind %s", table)
	}
	_, lines = verify(t, r)
	require.Empty(t, lines, "all rows are back")

	nobody := key.ID{0: 1, 15: 1}
	sh := r.Store.ShardOf(nobody)
	for _, stray := range [][]byte{
		key.Entry(nil, sh, nobody, 1), key.Draft(nil, sh, nobody, "john"), key.Node(nil, sh, "walk", "a", "main", nobody),
		key.Timer{Due: 1, ID: nobody, Sequence: 1}.Key(nil, sh), key.Activity(nil, sh, nobody, 1, 1), key.Task(nil, sh, nobody, 1, 1),
		key.List(nil, sh, 'i', "john", 1, nobody), key.Incident(nil, sh, nobody, 1, 1),
		key.Delivery{ID: nobody, Queue: "hook", Sequence: 1}.Key(nil, sh), key.Attempt(nil, sh, "walk", 1, key.Delivery{ID: nobody, Queue: "hook", Sequence: 1}),
	} {
		r.Overwrite(sh, stray, []byte{1})
		_, lines := verify(t, r)
		require.Len(t, lines, 1)
		assert.Contains(t, lines[0], "there is no such instance")
		r.Overwrite(sh, stray, nil)
	}
	w := r.Store.NewBatch(0)
	w.Add(key.Count(nil, 0, "walk", 1), 2)
	require.NoError(t, r.Store.Commit(w))
	_, lines = verify(t, r)
	assert.Equal(t, []string{"shard 0: the counter of walk version 1 is off by 2"}, lines)
}

// TestVerifyReplaysHistories: an instance whose data its history does not give is damaged, though its record is one that was written.
func TestVerifyReplaysHistories(t *testing.T) {
	r := filled(t)
	var records [][]byte
	var keys [][]byte
	require.NoError(t, r.Store.Scan(key.RecordPrefix(nil, key.EveryShard, "walk"), func(k, value []byte) error {
		keys, records = append(keys, slices.Clone(k)), append(records, slices.Clone(value))
		return nil
	}))
	k, _ := key.Parse(keys[0])
	in, err := inventory.Read(r.Catalog, k.Shard, "walk", k.ID, records[0])
	require.NoError(t, err)
	in.State.Public = workflowtest.Value(strings.Replace(string(in.State.Public), `"n":6`, `"n":7`, 1))
	r.Overwrite(k.Shard, keys[0], in.Of.AppendRecord(nil, &in.State, in.Record.Chain, nil))
	report, lines := verify(t, r)
	assert.Equal(t, []string{"instance " + in.Name() + ": its data is not what its history gives"}, lines)
	assert.EqualValues(t, 1, report.Damaged)
}

// TestAVersionThatWasReplacedIsNoDamage: when no instance is of a version, it may get other text, and entries under it come to something else.
func TestAVersionThatWasReplacedIsNoDamage(t *testing.T) {
	r := workflowtest.Start(t, workflowtest.Options{})
	first, second := strings.Replace(walk, "id: walk", "id: walk\nversion: 1", 1), strings.Replace(walk, "id: walk", "id: walk\nversion: 2", 1)
	r.Publish(first)
	john := workflowtest.John
	id := r.Make(john, "walk", "")
	r.MustSend(john, "walk", id, "go", `{"n":3}`)
	move := func(from, to uint64) {
		plan, err := r.Parser.ParsePlan("plan", fmt.Appendf(nil, "from: %d\nto: %d\n", from, to), func(n uint64) (*statemachine.Definition, error) {
			return r.Catalog.Find("walk", n)
		})
		require.NoError(t, err)
		_, err = r.Migrate("walk", id, &message.Migration{Plan: plan, Caller: &statemachine.Caller{ID: "boss"}})
		require.NoError(t, err)
		require.NoError(t, r.Store.AwaitDurable())
	}
	want := func(replayed, not int64) {
		report, lines := verify(t, r)
		assert.Empty(t, lines)
		assert.Equal(t, inventory.Replay{Replayed: replayed, NotReplayed: not}, report.Replay)
	}
	r.Publish(first, second)
	move(1, 2)
	want(1, 0)
	r.Publish(strings.Replace(first, "svcPublic.n + event", "svcPublic.n * event", 1), second)
	want(0, 1)
	move(2, 1)
	want(0, 1)
}

// TestMeasureCountsEachRowOnce, in its kind and in its workflow.
func TestMeasureCountsEachRowOnce(t *testing.T) {
	r := filled(t)
	sizes, err := inventory.Measure(t.Context(), r.Store, func(context.Context, int) error { return nil }, func(string) {})
	require.NoError(t, err)
	var all, kinds inventory.Size
	require.NoError(t, r.Store.Scan(nil, func(k, value []byte) error {
		all.Rows++
		all.Bytes += int64(len(k) + len(value))
		return nil
	}))
	for _, k := range sizes.Kinds {
		kinds.Rows += k.Rows
		kinds.Bytes += k.Bytes
	}
	assert.Equal(t, all, sizes.Total)
	assert.Equal(t, all, kinds)
	require.Len(t, sizes.Workflows, 2)
	for _, w := range sizes.Workflows {
		assert.EqualValues(t, 3, w.Instances)
		assert.Positive(t, w.Bytes)
	}
}
