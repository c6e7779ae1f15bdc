package workflow

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
	"time"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/storetest"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/filter"
)

// TestIndexEntriesAreWrittenWithTheState follows one instance through all that
// can happen to an indexed value.
func TestIndexEntriesAreWrittenWithTheState(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1, stockIndexes...))
	h.awaitIndexes()
	id := h.create(boss, "stock", `{"a":1}`)
	many := make([]string, filter.KeysMax+1)
	for n := range many {
		many[n] = fmt.Sprint(n)
	}
	for _, c := range []struct {
		name, event, body, key string
		a, p                   []string // the values in the indexes on svcPublic.a and svcPrivate.p; "" is the absent one
	}{
		{"create", "", "", "", []string{"1"}, []string{"0"}},
		{"a value that changes", "set", `{"a":"x"}`, "", []string{`"x"`}, []string{"0"}},
		{"an event without data", "set", "", "", []string{`"x"`}, []string{"0"}},
		{"another value that changes", "set", `{"u":1}`, "", []string{`"x"`}, []string{"0"}},
		{"an event that nothing takes", "skip", `{"a":2}`, "", []string{`"x"`}, []string{"0"}},
		{"the same with a key", "skip", `{"a":2}`, "k", []string{`"x"`}, []string{"0"}},
		{"private data", "set", `{"svcPrivate":{"p":"secret"}}`, "", []string{`"x"`}, []string{`"secret"`}},
		{"an array", "set", `{"a":[3,1,3,[4]]}`, "", []string{"1", "3", "[4]", "[3,1,3,[4]]"}, []string{`"secret"`}},
		{"a smaller array", "set", `{"a":[1]}`, "", []string{"1", "[1]"}, []string{`"secret"`}},
		{"an empty array", "set", `{"a":[]}`, "", []string{"[]"}, []string{`"secret"`}},
		{"a value that is removed", "set", `{"svcPublic":{"a":null},"svcPrivate":{"p":null}}`, "", []string{""}, []string{""}},
		{"an equal value in other words", "set", `{"a":1.0}`, "", []string{"1"}, []string{""}},
		{"and again", "set", `{"a":10e-1}`, "", []string{"1"}, []string{""}},
	} {
		if c.event != "" {
			h.mustSend(boss, "stock", id, c.event, c.body, c.key)
		}
		for path, want := range map[string][]string{"svcPublic.a": c.a, "svcPrivate.p": c.p} {
			if got, want := h.keysOf(id, path), encodings(want); !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%s: %s has the keys %q, want %q", c.name, path, got, want)
			}
		}
		h.checkIndexes()
	}
	h.mustSend(boss, "stock", id, "set", `{"a":[`+strings.Join(many, ",")+`]}`, "")
	got := h.keysOf(id, "svcPublic.a")
	if want := [][]byte{data.AppendOrdered(nil, data.Value("0")), nil, filter.OverflowKey}; len(got) != 3 || !bytes.Equal(got[0], want[0]) || !bytes.Equal(got[2], want[2]) {
		t.Errorf("too many values: keys %q, want the smallest, the largest and %q", got, filter.OverflowKey)
	}
	h.checkIndexes()
	for _, f := range []string{`{"svcPublic.a":500}`, `{"svcPublic.a":{"$lte":0}}`, `{"svcPublic.a":{"$gt":999}}`} {
		if got := h.query(boss, "stock", f); !slices.Equal(got, []string{id}) {
			t.Errorf("%s: got %v, want the instance with too many values", f, got)
		}
	}
	h.mustSend(boss, "stock", id, "set", `{"a":7}`, "")
	if got, want := h.keysOf(id, "svcPublic.a"), encodings([]string{"7"}); !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("few values again: keys %q, want %q", got, want)
	}
	h.checkIndexes()
}

func encodings(values []string) (keys [][]byte) {
	for _, v := range values {
		keys = append(keys, data.AppendOrdered(nil, data.Value(v)))
	}
	slices.SortFunc(keys, bytes.Compare)
	return keys
}

// keysOf returns an instance's values in an index, sorted.
func (h *house) keysOf(id, path string) (keys [][]byte) {
	h.t.Helper()
	row, ok := h.indexRow("stock", path)
	if !ok {
		h.t.Fatalf("no index on %s", path)
	}
	want := mustID(h.t, id)
	sh := h.store.ShardOf(want)
	err := h.store.Scan(persistence.IndexPrefix(nil, sh, row.Number), func(key, _ []byte) error {
		if value, id, ok := persistence.IndexEntry(key); ok && id == want {
			keys = append(keys, bytes.Clone(value))
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return keys
}

// randomSet is the data of an event that changes one or two values.
func randomSet(r *rand.Rand) string {
	return someOf(r, `{"a":1}`, `{"a":[1,2,"x"]}`, `{"a":null}`, `{"a":"y","t":["t01","t02"]}`, `{"t":"t03"}`, `{"b":[{"c":1},{"c":[2,3]}]}`,
		`{"b":null}`, `{"svcPrivate":{"p":1}}`, `{"svcPrivate":{"p":null},"svcPublic":{"a":2}}`, `{}`, fmt.Sprintf(`{"a":%d}`, r.IntN(50)))
}

// load sends events to instances of stock, makes new ones, and puts idle ones to
// sleep all the time, until stop is called.
func (h *house) live(ids []string) (stop func()) {
	var wg sync.WaitGroup
	var stopping atomic.Bool
	for g := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			for !stopping.Load() {
				var err error
				if r.IntN(8) == 0 {
					_, err = h.Create(h.t.Context(), &CreateRequest{Caller: boss, WorkflowID: "stock", Public: value(randomPublic(r, r.IntN(1000)))})
				} else {
					_, err = h.send(boss, "stock", ids[r.IntN(len(ids))], someOf(r, "set", "set", "close", "open", "side", "skip"), randomSet(r), "")
				}
				if err != nil && !errors.Is(err, failure.ErrUnavailable) && !errors.Is(err, failure.ErrNotFound) {
					h.t.Errorf("under load: %v", err)
				}
			}
		})
	}
	wg.Go(func() {
		for !stopping.Load() {
			h.sweepAfter(time.Hour)
		}
	})
	return func() { stopping.Store(true); wg.Wait() }
}

func publics(seed uint64, count int) []string {
	r := rand.New(rand.NewPCG(2, seed))
	all := make([]string, count)
	for n := range all {
		all[n] = randomPublic(r, n)
	}
	return all
}

// TestAnIndexIsBuiltWhileTheInstancesLiveOn: the builder, the events, the
// creates and the sleep of instances in all orders.
func TestAnIndexIsBuiltWhileTheInstancesLiveOn(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1))
	ids := h.fill("stock", publics(1, 800))
	h.sleepAll()
	for _, id := range ids[:200] {
		h.mustLoad(boss, "stock", id)
	}
	stop := h.live(ids)
	for version, indexes := range [][]string{{"svcPublic.a", "svcPublic.t"}, {"svcPublic.a", "svcPrivate.p", "svcPublic.b.c"}, {}, stockIndexes} {
		h.publish(leave, order, stock("stock", version+2, indexes...))
		h.awaitIndexes()
	}
	stop()
	h.checkIndexes()
	h.restart()
	h.checkIndexes()
	if n := len(h.instances("stock")); n < 800 {
		t.Errorf("%d instances, want 800 and more", n)
	}
}

// TestEveryCrashLeavesTheIndexesWhole: state and entries are one commit.
func TestEveryCrashLeavesTheIndexesWhole(t *testing.T) {
	disk := storetest.NewDisk()
	h := newHouseOn(t, disk, Options{})
	h.publish(leave, order, stock("stock", 1, stockIndexes...))
	ids := h.fill("stock", publics(3, 40))
	h.awaitIndexes()
	stop := h.live(ids)
	var crashed []*storetest.Disk
	for n := range 3 {
		before := h.Router.Metrics().Events
		await(t, "events", func() bool { return h.Router.Metrics().Events > before+20 })
		if n == 1 { // this crash is in the middle of building
			h.publish(leave, order, stock("stock", 2, append([]string{"svcPublic.u"}, stockIndexes...)...))
		}
		crashed = append(crashed, disk.AfterCrash())
	}
	stop()
	h.checkIndexes()
	for _, disk := range crashed {
		again := newHouseOn(t, disk, Options{})
		again.checkIndexes()
		again.awaitIndexes()
		again.checkIndexes()
		again.stop()
	}
}

// TestACreateOnItsWayIsInANewIndex: a commit that does not know of an index has
// to be in the journal before the builder looks around. Long arrays make it slow
// to write the entries of the index that there was before.
func TestACreateOnItsWayIsInANewIndex(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1, "svcPublic.a"))
	slow := `{"u":1,"a":[` + strings.Repeat("1,", 20_000) + `2]}`
	var wg sync.WaitGroup
	var stopping atomic.Bool
	for range 2 {
		wg.Go(func() {
			for !stopping.Load() {
				h.create(boss, "stock", slow)
			}
		})
	}
	for n := range 8 {
		h.publish(leave, order, stock("stock", n+2, [][]string{{"svcPublic.a", "svcPublic.u"}, {"svcPublic.a"}}[n%2]...))
		h.awaitIndexes()
	}
	h.publish(leave, order, stock("stock", 20, "svcPublic.a", "svcPublic.u", "svcPublic.t"))
	h.awaitIndexes()
	stopping.Store(true)
	wg.Wait()
	h.checkIndexes()
}

// crowd makes an instance take no calls until leave is called, so that the
// builder stops in front of it.
func (h *house) crowd(id string) (leave func()) {
	h.t.Helper()
	h.mustLoad(boss, "stock", id)
	e, _ := h.awake.Load(mustID(h.t, id))
	full := int32(h.Router.o.InstanceInFlightMax)
	e.pending.Add(full)
	return func() { e.pending.Add(-full); h.sweep() }
}

// inTheMiddle fills stock, asks for an index on svcPublic.a, and lets the
// builder stop in the middle. Half of the instances before are awake. It returns
// all but the one that holds the builder up.
func (h *house) inTheMiddle(count int) (ids []string, goOn func()) {
	h.t.Helper()
	h.publish(leave, order, stock("stock", 1))
	ids = h.fill("stock", publics(4, count))
	h.sleepAll()
	all := h.instances("stock")
	slices.SortStableFunc(all, func(a, b storedInstance) int { return cmp.Compare(h.store.ShardOf(a.id), h.store.ShardOf(b.id)) })
	middle := len(all) / 2
	rows, field := 0, fieldOf(h.t, "svcPublic.a")
	for n, s := range all[:middle] {
		rows += len(field.Keys(s.document))
		if n%2 == 0 {
			h.mustLoad(boss, "stock", s.name)
		}
	}
	goOn = h.crowd(all[middle].name)
	h.publish(leave, order, stock("stock", 2, "svcPublic.a"))
	row, _ := h.indexRow("stock", "svcPublic.a")
	await(h.t, "half of the index", func() bool { return h.indexRows(row.Number) == rows })
	return slices.DeleteFunc(ids, func(id string) bool { return id == all[middle].name }), goOn
}

func TestAnIndexIsAskedOnlyWhenItIsWhole(t *testing.T) {
	h := newHouse(t, Options{})
	ids, goOn := h.inTheMiddle(200)
	h.checkIndexes()
	one := query.Request{Caller: boss, WorkflowID: "stock", Filter: `{"svcPublic.a":{"$in":[1,"a"]}}`, Explain: true}
	want := matching(t, h.instances("stock"), one.Filter)
	got, end, err := h.list(one)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("while it is being built: got %v, %v, want %v", got, err, want)
	}
	if err == nil && (end.Explain.Plan != "scan" || len(end.Explain.Considered) != 0) {
		t.Errorf("while it is being built: %+v, want a scan and nothing considered", end.Explain)
	}
	byIndex := query.Request{Caller: boss, WorkflowID: "stock", Sort: "svcPublic.a"}
	if _, _, err := h.list(byIndex); !errors.Is(err, failure.ErrBusy) {
		t.Errorf("sorted by what is being built: got %v, want ErrBusy", err)
	}
	for n, id := range ids { // before and behind the middle
		if n%3 == 0 {
			h.mustSend(boss, "stock", id, "set", `{"a":[77,78]}`, "")
		}
	}
	h.checkIndexes()
	goOn()
	h.awaitIndexes()
	h.checkIndexes()
	if got, _, err := h.list(byIndex); err != nil || len(got) != len(ids)+1 {
		t.Errorf("sorted by the whole index: %d ids, %v, want %d", len(got), err, len(ids)+1)
	}
	if _, end, err := h.list(one); err != nil || len(end.Explain.Considered) != 1 {
		t.Errorf("with the whole index: %+v, %v, want it considered", end.Explain, err)
	}
}

func TestARestartInTheMiddleOfBuildingGoesOn(t *testing.T) {
	disk := storetest.NewDisk()
	h := newHouseOn(t, disk, Options{})
	ids, _ := h.inTheMiddle(60)
	for _, id := range ids[:20] {
		h.mustSend(boss, "stock", id, "set", `{"a":[77,78]}`, "")
	}
	crashed := disk.AfterCrash()
	begun := time.Now()
	h.stop()
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("stopping in the middle of building took %s", took)
	}
	h.start()
	for _, house := range []*house{h, newHouseOn(t, crashed, Options{})} {
		for _, id := range ids[15:30] {
			house.mustSend(boss, "stock", id, "set", `{"a":"z"}`, "")
		}
		house.awaitIndexes()
		house.checkIndexes()
		if row, ok := house.indexRow("stock", "svcPublic.a"); !ok || row.Number != 1 || row.State != whole {
			t.Errorf("after the restart the index is %+v, want number 1 and whole", row)
		}
	}
}

// TestAStoreThatRefusesForAMomentDoesNotSpoilAnIndex: the builder meets refused
// appends of its own and of instances, and begins again.
func TestAStoreThatRefusesForAMomentDoesNotSpoilAnIndex(t *testing.T) {
	disk := storetest.NewDisk()
	h := newHouseOn(t, disk, Options{})
	ids, goOn := h.inTheMiddle(60)
	for _, id := range ids[40:] { // some of those to come are awake
		h.mustLoad(boss, "stock", id)
	}
	disk.SetFree(0)
	storetest.AwaitAccepting(t, h.store, false)
	goOn()
	await(t, "the builder to notice", func() bool { return h.book.count("index is not finished") > 0 })
	if row, _ := h.indexRow("stock", "svcPublic.a"); row.State != building {
		t.Errorf("while the store refuses, the index is %s", row.State)
	}
	h.checkIndexes()
	disk.SetFree(1 << 40)
	storetest.AwaitAccepting(t, h.store, true)
	for _, id := range ids[30:] {
		h.mustSend(boss, "stock", id, "set", `{"a":"z"}`, "")
	}
	h.publish(leave, order, stock("stock", 2, "svcPublic.a"), stock("other", 1, "svcPublic.a")) // rather than wait for the next attempt
	h.awaitIndexes()
	h.checkIndexes()
	h.restart()
	h.checkIndexes()
}

func TestAnIndexThatGoesFreesItsKeysAndItsNumberIsNotUsedAgain(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1, "svcPublic.a", "svcPublic.t"), stock("other", 1, "svcPublic.a"))
	h.fill("stock", publics(5, 100))
	h.fill("other", publics(6, 100))
	h.awaitIndexes()
	row, _ := h.indexRow("stock", "svcPublic.a")
	if h.indexRows(row.Number) < 100 {
		t.Fatalf("the index has %d rows, want one for each instance", h.indexRows(row.Number))
	}
	h.publish(leave, order, stock("stock", 2, "svcPublic.t"), stock("other", 1, "svcPublic.a"))
	h.awaitIndexes()
	if got := h.indexRows(row.Number); got != 0 {
		t.Errorf("an index that is gone has %d rows", got)
	}
	h.checkIndexes()
	if _, _, err := h.list(query.Request{Caller: boss, WorkflowID: "stock", Sort: "svcPublic.a"}); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("sorted by an index that is gone: got %v, want ErrInvalid", err)
	}
	h.restart()
	h.publish(leave, order, stock("stock", 3, "svcPublic.a", "svcPublic.t"))
	h.awaitIndexes()
	again, ok := h.indexRow("stock", "svcPublic.a")
	if !ok || again.Number <= row.Number || again.Number <= 3 {
		t.Errorf("the index that came again is %+v, before it was %+v", again, row)
	}
	if kept, ok := h.indexRow("other", "svcPublic.a"); !ok || kept.State != whole {
		t.Errorf("the index of a workflow whose file is gone is %+v, %v", kept, ok)
	}
	h.checkIndexes()
}

// TestAnIndexMayGoInTheMiddleOfBuilding: nothing that was on its way stays.
func TestAnIndexMayGoInTheMiddleOfBuilding(t *testing.T) {
	h := newHouse(t, Options{})
	ids, goOn := h.inTheMiddle(300)
	stop := h.live(ids)
	h.publish(leave, order, stock("stock", 3))
	goOn()
	h.awaitIndexes()
	stop()
	if got := h.indexRows(1); got != 0 {
		t.Errorf("an index that is gone has %d rows", got)
	}
	h.checkIndexes()
	if h.book.count("index is whole") > 0 {
		t.Error("the log says that the index is whole")
	}
}

// TestALateEntryOfAnIndexThatIsGoneIsNotWritten: a call of the builder may wait
// in a mailbox for longer than the index lives.
func TestALateEntryOfAnIndexThatIsGoneIsNotWritten(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1, "svcPublic.a"))
	id := h.create(boss, "stock", `{"a":1}`)
	h.awaitIndexes()
	ix := h.catalog.Indexes().Find("stock", "svcPublic.a")
	h.publish(leave, order, stock("stock", 2))
	h.awaitIndexes()
	e, _ := h.awake.Load(mustID(t, id))
	if err := e.acquire(); err != nil {
		t.Fatal(err)
	}
	h.inFlight.Add(1)
	if _, err := h.wait(h.Router.send(e, enterIndex{ix})); err != nil {
		t.Errorf("got %v, want nothing to be done", err)
	}
	h.checkIndexes()
}

// TestADamagedInstanceIsInNoIndexAndTheOthersAre also for one that is awake.
func TestADamagedInstanceIsInNoIndexAndTheOthersAre(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1))
	ids := h.fill("stock", publics(7, 50))
	h.sleepAll()
	good := h.instances("stock")
	for n, id := range ids[:2] {
		key := mustID(t, id)
		w := h.store.NewWrites(h.store.ShardOf(key))
		w.Set(persistence.RecordKey(nil, h.store.ShardOf(key), "stock", key), []byte("not a record"))
		done := make(confirmed, 1)
		h.store.Append(w, done)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if _, err := h.load(boss, "stock", id); n == 0 && !errors.Is(err, failure.ErrExecution) {
			t.Fatalf("a damaged instance was read: %v", err) // it is awake from here on
		}
	}
	h.publish(leave, order, stock("stock", 2, "svcPublic.a"))
	h.awaitIndexes()
	want := 0
	for _, s := range good {
		if !slices.Contains(ids[:2], s.name) {
			want += len(fieldOf(t, "svcPublic.a").Keys(s.document))
		}
	}
	if got := h.indexRows(1); got != want {
		t.Errorf("the index has %d rows, want %d", got, want)
	}
}

// TestAPathThatCannotBeIndexedIsAFault: it must not be stored, because a
// restart would meet it again.
func TestAPathThatCannotBeIndexedIsAFault(t *testing.T) {
	h := newHouse(t, Options{})
	for _, path := range []string{"svcPublic" + strings.Repeat(".a", 25), "svcPublic" + strings.Repeat(".0", 12)} {
		err := h.catalog.Publish(sources(t, leave, order, stock("stock", 1, path)))
		var faults document.Faults
		if !errors.As(err, &faults) {
			t.Errorf("%s: got %v, want faults", path, err)
		}
	}
	h.create(john, "leave", "")
	h.restart()
	h.create(john, "leave", "")
}

// TestIndexesSurviveASetThatIsRefused: what is not published changes nothing.
func TestIndexesSurviveASetThatIsRefused(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1, "svcPublic.a"))
	h.fill("stock", publics(8, 20))
	h.awaitIndexes()
	if err := h.catalog.Publish(sources(t, leave, order, stock("stock", 1, "svcPublic.t"))); err == nil {
		t.Error("other content under a version that has instances was taken")
	}
	if row, ok := h.indexRow("stock", "svcPublic.a"); !ok || row.State != whole {
		t.Errorf("the index is %+v", row)
	}
	if _, ok := h.indexRow("stock", "svcPublic.t"); ok {
		t.Error("there is an index of a definition that was refused")
	}
	h.create(boss, "stock", `{"a":1}`)
	h.checkIndexes()
}

// TestStoppingWhileTheDiskHangs: the builder waits for its entries and no longer.
func TestStoppingWhileTheDiskHangs(t *testing.T) {
	disk := storetest.NewDisk()
	h := newHouseOn(t, disk, Options{})
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
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("not stopped though the disk works again")
	}
}
