package query

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/history"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// shelf is a service over the index entries, the count and a history entry of instances of stock.
type shelf struct{ *Service }

func fill(t *testing.T, publics []string) shelf {
	const text = "id: stock\nindexes: [svcPublic.t, svcPublic.n]\nstateMachines: {m: {states: {a: {type: final}}}}\n"
	store, err := storetest.NewDisk().Open(persistence.Options{Log: zerolog.Nop(), Shards: 8})
	require.NoError(t, err)
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	parsed, err := parser.Parse(statemachine.Source{File: "stock.yaml", Text: []byte(text)})
	require.NoError(t, err)
	c, err := catalog.Open(catalog.Options{Store: store, Parser: parser, Log: zerolog.Nop()})
	require.NoError(t, err)
	require.NoError(t, c.Publish([]catalog.Source{{File: "stock.yaml", Text: []byte(text), Parsed: parsed.Definition}}))
	ctx, cancel := context.WithCancel(t.Context())
	go c.BuildIndexes(ctx, nil) // there are no instances yet
	synctest.Wait()
	cancel()
	for n, public := range publics {
		id := key.ID{}
		binary.BigEndian.PutUint64(id[:], uint64(n))
		sh := store.ShardOf(id)
		w := store.NewBatch(sh)
		for _, ix := range (*c.Indexes())["stock"] {
			ix.Enter(w, nil, sh, id, filter.Document{Public: data.Value(public)})
		}
		w.Add(key.Count(nil, sh, "stock", 1), 1)
		w.Set(key.Entry(nil, sh, id, 1), history.Keep(append(make([]byte, history.HeadBytes), `{"transitionEvent":"go"}`...), nil, false))
		store.Append(w, make(confirmation, 1))
	}
	require.NoError(t, store.AwaitDurable())
	s := New(Options{Store: store, Catalog: c, Clock: time.Now, InFlight: new(atomic.Int64), QueriesMax: 2, QueriesOpenMax: 32})
	t.Cleanup(func() { s.Stop(); assert.NoError(t, store.Close()) })
	return shelf{s}
}

// with calls do with a query that is ready to choose its plan.
func (s shelf) with(ctx context.Context, of, sort string, do func(q *query) error) error {
	q, err := s.newQuery(&Request{Caller: &identity.Principal{ID: "boss"}, WorkflowID: "stock", Filter: of, Sort: sort}, nil)
	if err != nil {
		return err
	}
	q.slots = s.queries.slots("boss")
	defer q.slots.leave()
	if err := s.enter(context.Background(), q.slots, time.Minute); err != nil {
		return err
	}
	q.ctx = ctx
	q.openSnapshot()
	return errors.Join(do(q), q.snapshot.Close())
}

func choose(q *query) error { _, err := q.choose(); return err }

// TestCollecting ends soon, before the first candidate too, and is bounded: an index whose
// rows were too many is not collected, whatever was guessed.
func TestCollecting(t *testing.T) { synctest.Test(t, collecting) }

func collecting(t *testing.T) {
	s, few := fill(t, append(slices.Repeat([]string{`{"t":"many"}`}, 150), slices.Repeat([]string{`{"t":"few"}`}, 30)...)), `{"svcPublic.t":"few"}`
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	for ctx, want := range map[context.Context]error{cancelled: context.Canceled, late: context.DeadlineExceeded} {
		err := s.with(ctx, few, "", choose)
		assert.True(t, errors.Is(err, want) && !errors.Is(err, failure.ErrInternal), "got %v, want %v", err, want)
	}
	for most, want := range map[int]bool{29: false, 30: true, 1000: true} {
		assert.NoError(t, s.with(t.Context(), few, "", func(q *query) error {
			ids, all, err := q.collect(&q.accesses(q.filter)[0], most)
			assert.True(t, all == want && (!all || len(ids) == 30), "at most %d of 30: got %d, all %v", most, len(ids), all)
			return err
		}))
	}
	err := s.with(cancelled, "", "", func(q *query) error {
		q.unchecked = checkBytes - 1
		q.history(&candidate{})
		return q.failed
	})
	assert.True(t, errors.Is(err, context.Canceled) && !errors.Is(err, failure.ErrInternal), err)
}

// counting counts how often somebody looks whether it has ended.
type counting struct {
	context.Context
	looks int
}

func (c *counting) Err() error { c.looks++; return c.Context.Err() }

// TestPlanningLooksUpAlsoWhereThereIsNothing: to look for a value costs time, whether it
// is there or not.
func TestPlanningLooksUpAlsoWhereThereIsNothing(t *testing.T) { synctest.Test(t, planning) }

func planning(t *testing.T) {
	s := fill(t, append(slices.Repeat([]string{`{"t":"some"}`}, 100), slices.Repeat([]string{`{}`}, 500)...))
	s.Limits.ProbeKeys = 40
	none := make([]string, 640)
	for n := range none {
		none[n] = fmt.Sprint(n)
	}
	in := `{"svcPublic.n":{"$in":[` + strings.Join(none, ",") + `]}}`
	all := len(none) * int(s.o.Store.Shards()) // places to look at
	var branches []string
	for n := range 64 {
		branches = append(branches, `{"svcPublic.n":{"$in":[`+strings.Join(none[10*n:10*n+10], ",")+`]}}`)
	}
	for name, c := range map[string]struct {
		filter string
		steps  int // at least
	}{
		"a list of values":                       {in, all},
		"branches":                               {`{"$or":[` + strings.Join(branches, ",") + `]}`, all},
		"what is counted in part, and collected": {`{"svcPublic.t":{"$in":["some","` + strings.Join(none, `","`) + `"]}}`, all + all/2},
	} {
		ctx := &counting{Context: t.Context()}
		assert.NoError(t, s.with(ctx, c.filter, "svcPublic.n", choose), name)
		want := c.steps / checkEvery
		assert.GreaterOrEqual(t, ctx.looks, want, "%s: the query looks up", name)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
