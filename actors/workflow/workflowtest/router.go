// Package workflowtest runs a Router in a test, over a store in memory that can hang,
// crash and be full. It reads the stored instances without the code under test.
//
//	r := workflowtest.Start(t, workflowtest.Options{})
//	r.Publish(workflowtest.Stock("stock", 1, "svcPublic.a"))
//	id := r.Make(workflowtest.Boss, "stock", `{"a":1}`)
//	r.MustSend(workflowtest.Boss, "stock", id, "set", `{"a":2}`)
//	r.CheckIndexes()
//
// Only tests import it.
package workflowtest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/logtest"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// CommitWaitMax is the store's. It is so long that a slow machine is not taken for a
// disk that hangs.
const CommitWaitMax = time.Minute

// Shards is how many the store has when nobody asks for others. They are few because each looks at the clock once a second,
// and tests let hours pass on a virtual one.
const Shards = 2

// Options of Start.
type Options struct {
	// Workflow has limits, and a clock when it shall not be [Router.Clock]. Start sets what it makes itself; ReplyWaitMax is twice
	// CommitWaitMax unless it is set.
	Workflow workflow.Options
	// Disk is the store's; nil: a new one whose power does not fail.
	Disk   *storetest.Disk
	Shards int // of a new store; 0: Shards
}

// Router is a router over a store. It can be stopped and started again.
type Router struct {
	*workflow.Router
	// Disk is the one that the next Begin opens.
	Disk    *storetest.Disk
	shards  int
	Store   *persistence.Store
	System  *actors.System
	Catalog *catalog.Catalog
	Parser  *statemachine.Parser
	Log     logtest.Log

	t testing.TB
	o workflow.Options

	mu  sync.Mutex
	now time.Time // guarded by mu; each look moves it by 1 ms
}

// Start runs a router until the test ends.
func Start(t testing.TB, o Options) *Router {
	t.Helper()
	r := &Router{t: t, Disk: o.Disk, shards: cmp.Or(o.Shards, Shards), o: o.Workflow, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	if r.Disk == nil {
		r.Disk = storetest.NewSteadyDisk()
	}
	if r.o.ReplyWaitMax == 0 {
		r.o.ReplyWaitMax = 2 * CommitWaitMax
	}
	if r.o.Clock == nil {
		r.o.Clock = r.Clock
	}
	r.o.Log = zerolog.New(&r.Log)
	r.Begin()
	t.Cleanup(r.End)
	return r
}

// Begin starts a router that End has stopped.
func (r *Router) Begin() {
	r.t.Helper()
	var err error
	r.Store, err = r.Disk.Open(persistence.Options{Log: zerolog.Nop(), CommitWaitMax: CommitWaitMax, Shards: r.shards})
	r.Must(err)
	r.Parser, err = statemachine.NewParser(statemachine.ParserOptions{})
	r.Must(err)
	r.Catalog, err = catalog.Open(catalog.Options{Store: r.Store, Parser: r.Parser, Log: r.o.Log})
	r.Must(err)
	r.System = actors.NewSystem(zerolog.Nop())
	o := r.o
	o.Store, o.System, o.Catalog = r.Store, r.System, r.Catalog
	r.Router, err = workflow.Start(o)
	r.Must(err)
}

// End stops the router and closes the store. It can be called again.
func (r *Router) End() {
	if r.Router == nil {
		return
	}
	r.t.Helper()
	if err := errors.Join(r.Stop(context.Background()), r.System.Stop(context.Background()), r.Store.Close()); err != nil {
		r.t.Error(err)
	}
	r.Router = nil
}

// Restart is End and Begin.
func (r *Router) Restart() { r.t.Helper(); r.End(); r.Begin() }

// Clock is the router's.
func (r *Router) Clock() time.Time {
	r.Pass(time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// Pass lets time go by.
func (r *Router) Pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// Must ends the test when there is an error.
func (r *Router) Must(err error) {
	if err != nil {
		r.t.Helper()
		r.t.Fatal(err)
	}
}

// Second is the error of a call whose value nobody needs.
func Second[T any](_ T, err error) error { return err }

// Sources are definitions as files.
func (r *Router) Sources(texts ...string) (set []catalog.Source) {
	r.t.Helper()
	for i, text := range texts {
		file := fmt.Sprintf("workflows/%d.yaml", i)
		parsed, err := r.Parser.Parse(statemachine.Source{File: file, Text: []byte(text)})
		r.Must(err)
		set = append(set, catalog.Source{File: file, Text: []byte(text), Parsed: parsed.Definition})
	}
	return set
}

// Publish makes these the definitions that there are.
func (r *Router) Publish(texts ...string) {
	r.t.Helper()
	r.Must(r.Catalog.Publish(r.Sources(texts...)))
}

// Make creates an instance with the JSON of its public data and returns its id.
func (r *Router) Make(who *identity.Principal, workflowID, public string) string {
	r.t.Helper()
	reply, err := r.Create(r.t.Context(), &message.Create{Caller: who, WorkflowID: workflowID, Public: Value(public)})
	r.Must(err)
	return reply.InstanceID
}

// Value is a text as the gateway passes it on; empty: no value.
func Value(text string) data.Value {
	if text == "" {
		return nil
	}
	v, err := data.Clean([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

// ID is an instance's id as the store has it.
func (r *Router) ID(id string) key.ID {
	r.t.Helper()
	parsed, ok := instanceid.Parse(id)
	if !ok {
		r.t.Fatalf("%q is not an id", id)
	}
	return parsed
}

// Event is a request for a full reply; key is its idempotency key, if any.
func Event(who *identity.Principal, workflowID, id, name, body, key string) *message.Event {
	e := &message.Event{Caller: who, WorkflowID: workflowID, InstanceID: id, Name: name, Data: Value(body), WithHistory: true}
	if key != "" {
		e.Retry = message.Retry{Key: key, Fingerprint: sha256.Sum256([]byte(name + body))}
	}
	return e
}

// Try sends an event.
func (r *Router) Try(who *identity.Principal, workflowID, id, name, body, key string) (*message.Reply, error) {
	return r.Send(r.t.Context(), Event(who, workflowID, id, name, body, key))
}

// MustSend sends an event that must be taken. It has at most one idempotency key.
func (r *Router) MustSend(who *identity.Principal, workflowID, id, name, body string, key ...string) *message.Reply {
	r.t.Helper()
	reply, err := r.Try(who, workflowID, id, name, body, strings.Join(key, ""))
	r.Must(err)
	return reply
}

// Look loads an instance with its history.
func (r *Router) Look(who *identity.Principal, workflowID, id string) (*message.Reply, error) {
	return r.Load(r.t.Context(), &message.Load{Caller: who, WorkflowID: workflowID, InstanceID: id, WithHistory: true})
}

// MustLook is Look for what must be there.
func (r *Router) MustLook(who *identity.Principal, workflowID, id string) *message.Reply {
	r.t.Helper()
	reply, err := r.Look(who, workflowID, id)
	r.Must(err)
	return reply
}

// IDs asks a query and returns the ids, in the order in which they come.
func IDs(t testing.TB, ask func(context.Context, *query.Request, func([]byte) error) (*query.End, error), req query.Request) (ids []string, end *query.End, err error) {
	ids = []string{}
	end, err = ask(t.Context(), &req, func(item []byte) error {
		id, _ := data.Value(item).Lookup("_id")
		ids = append(ids, id.Text())
		return nil
	})
	return ids, end, err
}

// Overwrite puts other bytes under a key of the store, or none for nil.
func (r *Router) Overwrite(sh key.Shard, key, text []byte) {
	r.t.Helper()
	w := r.Store.NewBatch(sh)
	if w.Set(key, text); text == nil {
		w.Delete(key)
	}
	r.Must(r.Store.Commit(w))
}

// Spoil makes the stored record of an instance unreadable.
func (r *Router) Spoil(workflowID, id string) {
	r.t.Helper()
	sh := r.Store.ShardOf(r.ID(id))
	r.Overwrite(sh, key.Record(nil, sh, workflowID, r.ID(id)), []byte("not a record"))
}

// Await returns when ok is true.
func Await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	late := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("still waiting: %s", what)
		}
	}
}

// Principal is a user.
func Principal(id string, roles []string, privileges ...string) *identity.Principal {
	return &identity.Principal{ID: identity.UserID(id), Roles: roles, Privileges: privileges}
}
