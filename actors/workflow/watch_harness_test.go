package workflow_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/changefeed"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/statemachine/data"
)

const heartbeatEvery = 15 * time.Second

// watched is a router that has the workflow stock, and is watched.
type watched struct {
	*workflowtest.Router
	t       *testing.T
	own     *watch.Service // watched in place of the router's, see startOwn
	queries *query.Service // of own
}

func startWatched(t *testing.T, o workflow.Options) *watched {
	h := &watched{Router: workflowtest.Start(t, workflowtest.Options{Workflow: o}), t: t}
	h.Publish(workflowtest.Order, stock("stock", 1))
	return h
}

// startOwn is start with a watch service of the test's own: only announce tells it of
// entries, and the test sees its feeds, and the two slots for filters that take long.
func startOwn(t *testing.T) *watched {
	h := startWatched(t, workflow.Options{})
	h.queries = query.New(query.Options{
		Store: h.Store, Catalog: h.Catalog, Clock: h.Clock, InFlight: new(atomic.Int64),
		QueriesMax: 2, ListsMax: 2, QueriesOpenMax: 2, ListsOpenMax: 2, TimeMax: time.Minute,
	})
	changes := changefeed.New(changefeed.Options{Store: h.Store, Catalog: h.Catalog, Current: h.queries.AwaitCurrentIn, Clock: h.Clock})
	h.own = watch.New(watch.Options{Store: h.Store, Catalog: h.Catalog, Queries: h.queries, Changes: changes, Instances: h.Router, Clock: h.Clock})
	t.Cleanup(h.own.Stop)
	return h
}

// announce sends an event to an instance of stock and puts its entry into the feeds of
// the own service.
func (h *watched) announce(id, name, body string) {
	h.t.Helper()
	h.MustSend(boss, "stock", id, name, body)
	s := h.stored(id)
	of, err := h.Catalog.Newest("stock")
	h.Must(err)
	state, err := of.Restore(id, s.Record)
	h.Must(err)
	item := &watch.Item{ID: s.ID, Name: id, Sequence: s.Record.Sequence, States: s.Record.States, State: state, Of: of}
	item.Shard = h.Store.ShardOf(s.ID)
	row, err := h.Store.FeedEnd(item.Shard)
	h.Must(err)
	item.Place = row.Place
	for _, item.Entry = range h.StoredHistory(h.Store, s.ID).Elements() {
	}
	for _, f := range h.own.Feeds("stock", s.ID) {
		f.Publish(item)
	}
}

// stored is an instance of stock as the store has it.
func (h *watched) stored(id string) workflowtest.Stored {
	all := h.Instances("stock")
	return all[slices.IndexFunc(all, func(s workflowtest.Stored) bool { return s.Name == id })]
}

// heard is one event as a watcher got it.
type heard struct {
	watch.Event
	WorkflowID string     `json:"workflowId"`
	InstanceID string     `json:"instanceId"`
	Sequence   uint64     `json:"sequence"`
	Entry      data.Value `json:"-"`
	States     string     `json:"-"`
}

func (e heard) String() string {
	switch e.Kind {
	case watch.Opened:
		return "open"
	case watch.Lost:
		return "lost"
	case watch.Heartbeat:
		return "beat"
	}
	name, _ := e.Entry.Lookup("transitionEvent")
	return fmt.Sprintf("%d %s", e.Sequence, name.Text())
}

// listener is one call of Watch.
type listener struct {
	t      *testing.T
	events chan heard
	done   chan error
	stop   context.CancelFunc
	// hold, when it is not nil, is waited for before each event is taken.
	hold chan struct{}
	// beats says that beats are heard, too. On a slow machine they come at any time.
	beats atomic.Bool
}

// listen calls Watch, and returns when the stream is open.
func (h *watched) listen(req watch.Request) *listener {
	h.t.Helper()
	e := h.watch(req, nil)
	require.Equal(h.t, watch.Opened, e.next().Kind, "the first event")
	return e
}

func (h *watched) watch(req watch.Request, hold chan struct{}) *listener {
	ctx, cancel := context.WithCancel(h.t.Context())
	e := &listener{t: h.t, events: make(chan heard, 5000), done: make(chan error, 1), stop: cancel, hold: hold}
	if req.WorkflowID == "" {
		req.WorkflowID = "stock"
	}
	call := h.Router.Watches.Watch
	if h.own != nil {
		call = h.own.Watch
	}
	go func() { e.done <- call(ctx, &req, e.take) }()
	h.t.Cleanup(cancel)
	return e
}

func (e *listener) take(event watch.Event) error {
	if event.Kind == watch.Heartbeat && !e.beats.Load() {
		return nil
	}
	got := heard{Event: event}
	got.Data = bytes.Clone(event.Data)
	if event.Kind == watch.Entry {
		assert.NoError(e.t, json.Unmarshal(event.Data, &got), "data %s", event.Data)
		entry, _ := data.Value(got.Data).Lookup("entry")
		states, _ := data.Value(got.Data).Lookup("states")
		got.Entry, got.States = entry, string(states)
	}
	e.events <- got
	if e.hold != nil {
		<-e.hold
	}
	return nil
}

// next is the next event.
func (e *listener) next() heard {
	e.t.Helper()
	select {
	case got := <-e.events:
		return got
	case err := <-e.done:
		e.t.Fatalf("the watch has ended: %v", err)
	}
	return heard{}
}

// expect holds the next events against their texts.
func (e *listener) expect(what string, want ...string) (all []heard) {
	e.t.Helper()
	for n, text := range want {
		got := e.next()
		require.Equal(e.t, text, got.String(), "%s: event %d, %q", what, n, want)
		all = append(all, got)
	}
	return all
}

// end ends the watch, which has nothing more to hear.
func (e *listener) end() {
	e.t.Helper()
	e.stop()
	assert.ErrorIs(e.t, e.ended(), context.Canceled, "ended")
	if n := len(e.events); n > 0 {
		e.t.Errorf("heard %d events too many, the first is %s", n, <-e.events)
	}
}

func (e *listener) ended() error {
	e.t.Helper()
	return <-e.done
}
