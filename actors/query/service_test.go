package query

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// fixture is a service over instances that were written without actors.
type fixture struct {
	*Service
	t        *testing.T
	store    *persistence.Store
	workflow *statemachine.Definition
	inFlight atomic.Int64
	ids      []persistence.ID
}

const definition = `
id: stock
indexes: [svcPublic.t]
stateMachines: {m: {initial: a, states: {a: {on: {go: b}}, b: {type: final}}}}
`

var (
	john = &identity.Principal{ID: "john"}
	mary = &identity.Principal{ID: "mary"}
	boss = &identity.Principal{ID: "boss", Privileges: []string{string(identity.Workflows)}}
)

// newFixture makes an instance for each public object. They are in the index, which
// is whole.
func newFixture(t *testing.T, o Options, publics ...string) *fixture {
	t.Helper()
	f := &fixture{t: t}
	var err error
	if f.store, err = persistence.Open(t.TempDir(), persistence.Options{Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.store.Close(); err != nil {
			t.Error(err)
		}
	})
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := catalog.Open(f.store, parser, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(statemachine.Source{File: "stock.yaml", Text: []byte(definition)})
	if err != nil {
		t.Fatal(err)
	}
	f.workflow = parsed.Definition
	if err := definitions.Publish([]catalog.Source{{File: "stock.yaml", Text: []byte(definition), Parsed: f.workflow}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	built := make(chan struct{})
	go func() { definitions.BuildIndexes(ctx, nil); close(built) }() // over no instances
	ix := definitions.Indexes().Find("stock", "svcPublic.t")
	for !ix.Whole() {
		runtime.Gosched()
	}
	cancel()
	<-built
	ids := instanceid.NewGenerator()
	for _, public := range publics {
		id := ids.Draw(time.Now())
		f.ids = append(f.ids, id)
		f.write(ix, id, public)
	}
	o.Store, o.Catalog, o.Clock, o.InFlight = f.store, definitions, time.Now, &f.inFlight
	o.QueriesMax, o.ListsMax = cmp.Or(o.QueriesMax, 2), cmp.Or(o.ListsMax, 2)
	o.QueriesOpenMax, o.ListsOpenMax, o.QueryWaitMax, o.TimeMax = 16, 16, 2*time.Second, time.Minute
	f.Service = New(o)
	t.Cleanup(f.Stop)
	return f
}

// write makes one instance.
func (f *fixture) write(ix *catalog.Index, id persistence.ID, public string) {
	f.t.Helper()
	name, sh := instanceid.Text(id), f.store.ShardOf(id)
	made, err := f.workflow.Create(statemachine.Creation{ID: name, Caller: catalog.CallerOf(john), Public: data.Value(public), Now: time.Now()})
	if err != nil {
		f.t.Fatal(err)
	}
	entry := made.Entry.AppendJSON(make([]byte, history.HeadBytes))
	chain := history.Seal(entry, statemachine.Chain{})
	w := f.store.NewWrites(sh)
	w.Set(persistence.RecordKey(nil, sh, "stock", id), f.workflow.AppendRecord(nil, &made.Instance, chain, f.workflow.AppendStates(nil, &made.Instance), nil))
	w.Set(persistence.EntryKey(nil, sh, id, 1), entry)
	w.Add(persistence.CountKey(nil, sh, "stock", f.workflow.Version), 1)
	ix.Update(w, nil, sh, id, nil, &made.Instance)
	if err := f.store.Commit(w); err != nil {
		f.t.Fatal(err)
	}
}

// slotsOf takes slots among the queries. It ends with the test.
func (f *fixture) slotsOf(who *identity.Principal) *slots {
	f.t.Helper()
	got, err := f.enter(f.t.Context(), f.queries, who.ID, time.Minute)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(got.leave)
	return got
}

// begin returns a query that is ready to choose its plan.
func (f *fixture) begin(ctx context.Context, req Request) *query {
	f.t.Helper()
	req.Caller, req.WorkflowID = boss, "stock"
	q, err := f.newQuery(&req, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	q.ctx, q.slots = ctx, f.slotsOf(boss)
	q.openSnapshot()
	f.t.Cleanup(func() {
		if err := q.snapshot.Close(); err != nil {
			f.t.Error(err)
		}
	})
	return q
}

// few is a filter that the index answers with a part of the instances.
const few = `{"svcPublic.t":"few"}`

func manyAndFew() []string {
	return append(slices.Repeat([]string{`{"t":"many"}`}, 90), slices.Repeat([]string{`{"t":"few"}`}, 30)...)
}

// TestCollectingEndsSoon: before the first candidate, too.
func TestCollectingEndsSoon(t *testing.T) {
	f := newFixture(t, Options{QueriesMax: 4}, append(manyAndFew(), slices.Repeat([]string{`{"t":"many"}`}, 60)...)...)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		want error
	}{{"cancelled", cancelled, context.Canceled}, {"too late", late, context.DeadlineExceeded}} {
		q := f.begin(c.ctx, Request{Filter: few})
		if _, err := q.choose(); !errors.Is(err, c.want) || errors.Is(err, failure.ErrInternal) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

// TestCollectingIsBounded: an index whose rows were too many is not collected,
// whatever was guessed.
func TestCollectingIsBounded(t *testing.T) {
	f := newFixture(t, Options{}, manyAndFew()...)
	q := f.begin(t.Context(), Request{Filter: few})
	accesses, err := q.accesses()
	if err != nil || len(accesses) != 1 {
		t.Fatal(accesses, err)
	}
	for most, want := range map[int]bool{29: false, 30: true, 1000: true} {
		if ids, all, err := q.collect(&accesses[0], most); err != nil || all != want || all && len(ids) != 30 {
			t.Errorf("at most %d of 30: got %d, all %v, %v", most, len(ids), all, err)
		}
	}
}

// TestReadingAHistoryIsCounted, too: it may be longer than all else.
func TestReadingAHistoryIsCounted(t *testing.T) {
	f := newFixture(t, Options{}, `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	q := f.begin(ctx, Request{})
	q.unchecked = checkBytes - 1
	cancel()
	q.history(&candidate{id: f.ids[0]})
	if !errors.Is(q.failed, context.Canceled) || errors.Is(q.failed, failure.ErrInternal) {
		t.Errorf("got %v, want context.Canceled", q.failed)
	}
}

// TestAnAnswerThatWasReadHasEnded: it waits for no slot when nothing is left to do.
func TestAnAnswerThatWasReadHasEnded(t *testing.T) {
	f := newFixture(t, Options{QueriesMax: 1, ListsMax: 1}, `{}`)
	sh := f.store.ShardOf(f.ids[0])
	w := f.store.NewWrites(sh)
	w.Set(persistence.ListKey(nil, sh, 'f', "john", 1, f.ids[0]), nil)
	if err := f.store.Commit(w); err != nil {
		t.Fatal(err)
	}
	read := 0
	taken := func(of *readers) error {
		read++
		got, err := f.enter(t.Context(), of, mary.ID, time.Second)
		if err == nil {
			t.Cleanup(got.leave)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // or it would wait for the slot
	defer cancel()
	if _, err := f.Query(ctx, &Request{Caller: boss, WorkflowID: "stock"}, func([]byte) error { return taken(f.queries) }); err != nil {
		t.Errorf("a query, while mary has the slot: %v", err)
	}
	prefix := persistence.ListPrefix(nil, persistence.EveryShard, 'f', "john")
	decode := func(r Row) (persistence.ID, int, error) { return r.ID, 0, nil }
	if err := Rows(ctx, f.Service, john.ID, prefix, decode, func(persistence.ID) error { return taken(f.lists) }); err != nil {
		t.Errorf("a list, while mary has the slot: %v", err)
	}
	if read != 2 {
		t.Errorf("%d items were read, want 2", read)
	}
}

// TestUsersShareTheRestOfTheMachine: a user's queries rest as if others had one
// each.
func TestUsersShareTheRestOfTheMachine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // on a large machine nobody rests
	f := newFixture(t, Options{QueriesMax: 8})
	f.inFlight.Add(1 << 20) // events keep the machine busy
	alone := f.slotsOf(mary)
	f.slotsOf(john)
	want := f.restAfter(time.Millisecond, "mary")
	for range 3 {
		f.slotsOf(john)
	}
	if got := f.restAfter(time.Millisecond, "mary"); got != want || got == 0 {
		t.Errorf("mary rests %s beside four of john's, %s beside one, want the same", got, want)
	}
	if got := f.restAfter(time.Millisecond, "john"); got <= 3*want {
		t.Errorf("one of john's four rests %s, want about four times %s", got, want)
	}
	alone.pause()
	if got := f.restAfter(time.Millisecond, "john"); got >= 3*want {
		t.Errorf("one of john's four rests %s while mary's waits for its reader, want about twice %s", got, want)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
