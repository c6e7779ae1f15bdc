package workflow_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// TestAnInstanceWithTooManyValues is found by every query, until it has few again.
func TestAnInstanceWithTooManyValues(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(leave, order, stock("stock", 1, workflowtest.StockIndexes...))
	h.AwaitIndexes()
	id := h.Make(boss, "stock", `{"a":1}`)
	many := make([]string, filter.KeysMax+1)
	for n := range many {
		many[n] = fmt.Sprint(n)
	}
	h.MustSend(boss, "stock", id, "set", `{"a":[`+strings.Join(many, ",")+`]}`)
	got := h.keysOf(id, "svcPublic.a")
	assert.True(t, len(got) == 3 && bytes.Equal(got[0], data.AppendOrdered(nil, data.Value("0"))) && bytes.Equal(got[2], filter.OverflowKey), "%v %v", got, filter.OverflowKey)
	h.CheckIndexes()
	for _, f := range []string{`{"svcPublic.a":500}`, `{"svcPublic.a":{"$lte":0}}`, `{"svcPublic.a":{"$gt":999}}`} {
		got, _, err := h.list(query.Request{Caller: boss, WorkflowID: "stock", Filter: f})
		assert.True(t, err == nil && slices.Equal(got, []string{id}), "%s: got %v, %v, want the instance with too many values", f, got, err)
	}
	h.MustSend(boss, "stock", id, "set", `{"a":7}`)
	assert.Equal(t, [][]byte{data.AppendOrdered(nil, data.Value("7"))}, h.keysOf(id, "svcPublic.a"), "few values again")
	h.CheckIndexes()
}

// keysOf returns an instance's values in an index, sorted.
func (h *harness) keysOf(id, path string) (keys [][]byte) {
	h.t.Helper()
	row, ok := h.IndexRow("stock", path)
	require.True(h.t, ok, "no index on %s", path)
	want := h.ID(id)
	sh := h.Store.ShardOf(want)
	err := h.Store.Scan(key.IndexPrefix(nil, sh, row.Number), func(k, _ []byte) error {
		if value, id, ok := key.ParseIndex(k); ok && id == want {
			keys = append(keys, bytes.Clone(value))
		}
		return nil
	})
	h.Must(err)
	return keys
}

// live sends events to instances of stock, makes new ones, and puts idle ones to
// sleep all the time, until stop is called.
func (h *harness) live(ids []string) (stop func()) {
	var wg sync.WaitGroup
	var stopping atomic.Bool
	for g := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			for !stopping.Load() {
				var err error
				if r.IntN(8) == 0 {
					_, err = h.Create(h.t.Context(), &message.Create{Caller: boss, WorkflowID: "stock", Public: value(workflowtest.RandomPublic(r, r.IntN(1000)))})
				} else {
					_, err = h.Try(boss, "stock", ids[r.IntN(len(ids))], oneOf(r, "set", "set", "close", "open", "side", "skip"), workflowtest.RandomSet(r), "")
				}
				assert.False(h.t, err != nil && !errors.Is(err, failure.ErrUnavailable) && !errors.Is(err, failure.ErrNotFound), "under load: %v", err)
			}
		})
	}
	wg.Go(func() {
		for !stopping.Load() {
			h.SweepAfter(time.Hour)
		}
	})
	return func() { stopping.Store(true); wg.Wait() }
}

// TestAnIndexIsBuiltWhileTheInstancesLiveOn: the builder, the events, the
// creates and the sleep of instances in all orders.
func TestAnIndexIsBuiltWhileTheInstancesLiveOn(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(leave, order, stock("stock", 1))
	ids := h.Fill("stock", workflowtest.Publics(1, 200))
	h.sleepAll()
	for _, id := range ids[:50] {
		h.MustLook(boss, "stock", id)
	}
	stop := h.live(ids)
	for version, indexes := range [][]string{{"svcPublic.a", "svcPublic.t"}, {"svcPublic.a", "svcPrivate.p", "svcPublic.b.c"}, {}, workflowtest.StockIndexes} {
		h.Publish(leave, order, stock("stock", version+2, indexes...))
		h.AwaitIndexes()
	}
	stop()
	h.CheckIndexes()
	h.Restart()
	h.CheckIndexes()
	assert.GreaterOrEqual(t, len(h.Instances("stock")), 200, "instances, want 200 and more")
}

// TestEveryCrashLeavesIndexesAndListsWhole: state, entries and rows are one commit.
func TestEveryCrashLeavesIndexesAndListsWhole(t *testing.T) {
	disk := storetest.NewDisk()
	h := startOn(t, disk, workflow.Options{})
	stocks := func(version int, indexes ...string) []string {
		return []string{leave, order, stock("stock", version, append(indexes, workflowtest.StockIndexes...)...)}
	}
	h.Publish(stocks(1)...)
	ids := h.Fill("stock", workflowtest.Publics(3, 40))
	h.AwaitIndexes()
	h.createForm(mary, "leave", form.KindForm) // which nobody touches: each crash leaves it
	stop := h.live(ids)
	var forms sync.WaitGroup
	var enough atomic.Bool
	for g := range 4 {
		forms.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(g)))
			for !enough.Load() {
				workflowID := oneOf(r, "leave", "order")
				id := h.createForm(mary, workflowID, []form.Kind{form.KindForm, form.KindChecklist}[r.IntN(2)])
				for range r.IntN(4) {
					_, err := h.Try(mary, workflowID, id, oneOf(r, "submit", "approve", "back", "pay"), "", "")
					assert.False(t, err != nil && !errors.Is(err, failure.ErrInvalid), err)
				}
			}
		})
	}
	var crashed []*storetest.Disk
	for n := range 3 {
		before := h.Router.Metrics()
		workflowtest.Await(t, "events", func() bool {
			m := h.Router.Metrics()
			return m.Events > before.Events+20 && m.Creates > before.Creates+10
		})
		if n == 1 { // this crash is in the middle of building
			h.Publish(stocks(2, "svcPublic.u")...)
		}
		crashed = append(crashed, disk.AfterCrash())
	}
	stop()
	enough.Store(true)
	forms.Wait()
	h.CheckIndexes()
	h.checkLists()
	for _, disk := range crashed {
		again := startOn(t, disk, workflow.Options{})
		again.CheckIndexes()
		again.AwaitIndexes()
		again.CheckIndexes()
		again.checkLists()
		assert.NotEmpty(t, again.listed(mary, form.KindForm), "the crash left no form")
		again.End()
	}
}

// TestACreateOnItsWayIsInANewIndex: a commit that does not know of an index has
// to be in the journal before the builder looks around. Long arrays make it slow
// to write the entries of the index that there was before.
func TestACreateOnItsWayIsInANewIndex(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(leave, order, stock("stock", 1, "svcPublic.a"))
	slow := `{"u":1,"a":[` + strings.Repeat("1,", 20_000) + `2]}`
	var wg sync.WaitGroup
	var stopping atomic.Bool
	for range 2 {
		wg.Go(func() {
			for !stopping.Load() {
				h.Make(boss, "stock", slow)
			}
		})
	}
	for n := range 4 {
		h.Publish(leave, order, stock("stock", n+2, [][]string{{"svcPublic.a", "svcPublic.u"}, {"svcPublic.a"}}[n%2]...))
		h.AwaitIndexes()
	}
	h.Publish(leave, order, stock("stock", 20, "svcPublic.a", "svcPublic.u", "svcPublic.t"))
	h.AwaitIndexes()
	stopping.Store(true)
	wg.Wait()
	h.CheckIndexes()
}

// crowd makes an instance take no calls until leave is called, so that the
// builder stops in front of it.
func (h *harness) crowd(id string) (leave func()) {
	h.t.Helper()
	h.MustLook(boss, "stock", id)
	release := h.Occupy(h.ID(id), 256)
	return func() { release(); h.SweepAfter(0) }
}

// inTheMiddle fills stock, asks for an index on svcPublic.a, and lets the
// builder stop in the middle. Half of the instances before are awake. It returns
// all but the one that holds the builder up.
func (h *harness) inTheMiddle(count int) (ids []string, goOn func()) {
	h.t.Helper()
	h.Publish(leave, order, stock("stock", 1))
	ids = h.Fill("stock", workflowtest.Publics(4, count))
	h.sleepAll()
	all := h.Instances("stock")
	slices.SortStableFunc(all, func(a, b workflowtest.Stored) int { return cmp.Compare(h.Store.ShardOf(a.ID), h.Store.ShardOf(b.ID)) })
	middle := len(all) / 2
	rows, field := 0, workflowtest.FieldOf(h.t, "svcPublic.a")
	for n, s := range all[:middle] {
		rows += len(field.Keys(s.Document))
		if n%2 == 0 {
			h.MustLook(boss, "stock", s.Name)
		}
	}
	goOn = h.crowd(all[middle].Name)
	h.Publish(leave, order, stock("stock", 2, "svcPublic.a"))
	row, _ := h.IndexRow("stock", "svcPublic.a")
	workflowtest.Await(h.t, "half of the index", func() bool { return h.IndexRows(row.Number) == rows })
	return slices.DeleteFunc(ids, func(id string) bool { return id == all[middle].Name }), goOn
}

func TestAnIndexIsAskedOnlyWhenItIsWhole(t *testing.T) {
	h := start(t, workflow.Options{})
	ids, goOn := h.inTheMiddle(200)
	h.CheckIndexes()
	one := query.Request{Caller: boss, WorkflowID: "stock", Filter: `{"svcPublic.a":{"$in":[1,"a"]}}`, Explain: true}
	f, err := filter.Parse([]byte(one.Filter), filter.Options{})
	h.Must(err)
	want := []string{}
	for _, s := range h.Instances("stock") {
		if f.Match(s.Document) {
			want = append(want, s.Name)
		}
	}
	got, end, err := h.list(one)
	assert.True(t, err == nil && slices.Equal(got, want), "while it is being built: got %v, %v, want %v", got, err, want)
	if err == nil && (end.Explain.Plan != "scan" || len(end.Explain.Considered) != 0) {
		t.Errorf("while it is being built: %+v, want a scan and nothing considered", end.Explain)
	}
	byIndex := query.Request{Caller: boss, WorkflowID: "stock", Sort: "svcPublic.a"}
	_, _, err = h.list(byIndex)
	assert.ErrorIs(t, err, failure.ErrBusy, "sorted by what is being built")
	for n, id := range ids { // before and behind the middle
		if n%3 == 0 {
			h.MustSend(boss, "stock", id, "set", `{"a":[77,78]}`)
		}
	}
	h.CheckIndexes()
	goOn()
	h.AwaitIndexes()
	h.CheckIndexes()
	got, _, err = h.list(byIndex)
	assert.True(t, err == nil && len(got) == len(ids)+1, "sorted by the whole index: %d ids, %v, want %d", len(got), err, len(ids)+1)
	if _, end, err := h.list(one); err != nil || len(end.Explain.Considered) != 1 {
		t.Errorf("with the whole index: %+v, %v, want it considered", end.Explain, err)
	}
}

func TestARestartInTheMiddleOfBuildingGoesOn(t *testing.T) {
	disk := storetest.NewDisk()
	h := startOn(t, disk, workflow.Options{})
	ids, _ := h.inTheMiddle(60)
	for _, id := range ids[:20] {
		h.MustSend(boss, "stock", id, "set", `{"a":[77,78]}`)
	}
	crashed := disk.AfterCrash()
	h.Restart()
	for _, house := range []*harness{h, startOn(t, crashed, workflow.Options{})} {
		for _, id := range ids[15:30] {
			house.MustSend(boss, "stock", id, "set", `{"a":"z"}`)
		}
		house.AwaitIndexes()
		house.CheckIndexes()
		row, ok := house.IndexRow("stock", "svcPublic.a")
		assert.True(t, ok && row.Number == 1 && row.State == workflowtest.Whole, "after the restart the index is %+v, want number 1 and whole", row)
	}
}

// TestAStoreThatRefusesForAMomentDoesNotSpoilAnIndex: the builder meets refused
// appends of its own and of instances, and begins again.
func TestAStoreThatRefusesForAMomentDoesNotSpoilAnIndex(t *testing.T) {
	disk := storetest.NewDisk()
	h := startOn(t, disk, workflow.Options{})
	ids, goOn := h.inTheMiddle(60)
	for _, id := range ids[40:] { // some of those to come are awake
		h.MustLook(boss, "stock", id)
	}
	disk.SetFree(0)
	storetest.AwaitAccepting(t, h.Store, false)
	goOn()
	workflowtest.Await(t, "the builder to notice", func() bool { return h.Log.Count("index is not finished") > 0 })
	row, _ := h.IndexRow("stock", "svcPublic.a")
	assert.Equal(t, workflowtest.Building, row.State, "while the store refuses, the index")
	h.CheckIndexes()
	disk.SetFree(1 << 40)
	storetest.AwaitAccepting(t, h.Store, true)
	for _, id := range ids[30:] {
		h.MustSend(boss, "stock", id, "set", `{"a":"z"}`)
	}
	h.Publish(leave, order, stock("stock", 2, "svcPublic.a"), stock("other", 1, "svcPublic.a")) // rather than wait for the next attempt
	h.AwaitIndexes()
	h.CheckIndexes()
	h.Restart()
	h.CheckIndexes()
}

// TestAnIndexMayGoInTheMiddleOfBuilding: nothing that was on its way stays.
func TestAnIndexMayGoInTheMiddleOfBuilding(t *testing.T) {
	h := start(t, workflow.Options{})
	ids, goOn := h.inTheMiddle(100)
	stop := h.live(ids)
	h.Publish(leave, order, stock("stock", 3))
	goOn()
	h.AwaitIndexes()
	stop()
	assert.Zero(t, h.IndexRows(1), "an index that is gone")
	h.CheckIndexes()
	assert.LessOrEqual(t, h.Log.Count("index is whole"), 0, "the log says that the index is whole")
}

// TestALateEntryOfAnIndexThatIsGoneIsNotWritten: a call of the builder may wait
// in a mailbox for longer than the index lives.
func TestALateEntryOfAnIndexThatIsGoneIsNotWritten(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(leave, order, stock("stock", 1, "svcPublic.a"))
	id := h.Make(boss, "stock", `{"a":1}`)
	h.AwaitIndexes()
	ix := h.Catalog.Indexes().Find("stock", "svcPublic.a")
	h.Publish(leave, order, stock("stock", 2))
	h.AwaitIndexes()
	assert.NoError(t, h.EnterAwake(h.ID(id), ix))
	h.CheckIndexes()
}

// TestALateEntryBehindACommitEndsItsOwnOnce: its answer waits for that commit, and a
// Publish afterwards for nobody.
func TestALateEntryBehindACommitEndsItsOwnOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, workflow.Options{})
		defer h.End()
		h.Publish(leave, order, stock("stock", 1, "svcPublic.a"))
		id := h.Make(boss, "stock", `{"a":1}`)
		h.AwaitIndexes()
		ix := h.Catalog.Indexes().Find("stock", "svcPublic.a")
		h.Publish(leave, order, stock("stock", 2))
		h.AwaitIndexes()
		h.Disk.Hold()
		var both sync.WaitGroup
		both.Go(func() { h.MustSend(boss, "stock", id, "close", "") })
		synctest.Wait()
		both.Go(func() { h.Must(h.EnterAwake(h.ID(id), ix)) })
		synctest.Wait()
		h.Disk.Release()
		both.Wait()
		h.Publish(leave, order, stock("stock", 3, "svcPublic.a"))
		h.AwaitIndexes()
		h.CheckIndexes()
	})
}

// TestADamagedInstanceIsInNoIndexAndTheOthersAre also for one that is awake.
func TestADamagedInstanceIsInNoIndexAndTheOthersAre(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(leave, order, stock("stock", 1))
	ids := h.Fill("stock", workflowtest.Publics(7, 50))
	h.sleepAll()
	good := h.Instances("stock")
	for n, id := range ids[:2] {
		h.Spoil("stock", id)
		if _, err := h.Look(boss, "stock", id); n == 0 && !errors.Is(err, failure.ErrExecution) {
			t.Fatalf("a damaged instance was read: %v", err) // it is awake from here on
		}
	}
	h.Publish(leave, order, stock("stock", 2, "svcPublic.a"))
	h.AwaitIndexes()
	want := 0
	for _, s := range good {
		if !slices.Contains(ids[:2], s.Name) {
			want += len(workflowtest.FieldOf(t, "svcPublic.a").Keys(s.Document))
		}
	}
	assert.Equal(t, want, h.IndexRows(1), "the index")
}

// TestStoppingWhileTheDiskHangs: the builder waits for its entries and no longer.
func TestStoppingWhileTheDiskHangs(t *testing.T) {
	disk := storetest.NewDisk()
	h := startOn(t, disk, workflow.Options{})
	_, goOn := h.inTheMiddle(40)
	hanging := disk.Hold()
	goOn()
	<-hanging
	stopped := make(chan error, 1)
	go func() { stopped <- h.Stop(t.Context()) }()
	select {
	case err := <-stopped:
		t.Errorf("stopped with entries on their way: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	disk.Release()
	err := <-stopped
	assert.NoError(t, err)
}
