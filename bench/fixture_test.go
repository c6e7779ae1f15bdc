package main

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/bench/load"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// callers is how many goroutines ask at once, like the usual 64 connections.
const callers = 64

// runParallel has 64 callers, whatever the number of cores, do again and again what each begins with.
func runParallel(b *testing.B, begin func(caller int) (do func(n int) error)) {
	b.Helper()
	var number atomic.Int64
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		do := begin(int(number.Add(1)-1) % callers)
		for n := 0; pb.Next(); n++ {
			if err := do(n); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
}

// definition is the workflow of the load.
func definition(tb testing.TB) *statemachine.Definition {
	tb.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(tb, err)
	parsed, err := parser.Parse(statemachine.Source{File: "leave-request.yaml", Text: []byte(load.Definition)})
	require.NoError(tb, err)
	return parsed.Definition
}

// caller is the user of the load as a state machine sees it.
var caller = &statemachine.Caller{ID: load.UserID, Roles: []string{"employee"}, Privileges: []string{"mod-form-portal"}}

// begun is when all instances of the pure layers were created.
var begun = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// created is a new instance of the workflow.
func created(tb testing.TB, d *statemachine.Definition) statemachine.Instance {
	tb.Helper()
	result, err := d.Create(statemachine.Creation{
		ID: "01JD0000000000000000000001", Caller: caller, Public: data.Value(createPublic), Now: begun,
	})
	if err != nil { // NB: require would cost a part of what is measured
		tb.Fatal(err)
	}
	return result.Instance
}

// turn is the event that an instance gets after n others.
func turn(n int) statemachine.Event {
	name, content, _ := eventAfter(n)
	return statemachine.Event{Name: statemachine.EventName(name), Data: data.Value(content), Caller: caller, Now: begun}
}

// openStore opens a store on the disk.
func openStore(tb testing.TB) *persistence.Store {
	tb.Helper()
	store, err := persistence.Open(tb.TempDir(), persistence.Options{Log: zerolog.Nop()})
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, store.Close()) })
	return store
}

// fixture is everything below HTTP, on a real store, with the workflow published.
type fixture struct {
	*workflow.Router
	store     *persistence.Store
	directory *identity.Directory
	caller    *identity.Principal
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	text, err := load.BuiltIn().IdentityText()
	require.NoError(tb, err)
	directory, err := identity.ParseDirectory("identity.yaml", []byte(text))
	require.NoError(tb, err)
	h := &fixture{store: openStore(tb), directory: directory, caller: directory.Principal(load.UserID)}
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(tb, err)
	const file = "workflow.yaml"
	parsed, err := parser.Parse(statemachine.Source{File: file, Text: []byte(load.Definition)})
	require.NoError(tb, err)
	definitions, err := catalog.Open(catalog.Options{Store: h.store, Parser: parser, Log: zerolog.Nop()})
	require.NoError(tb, err)
	require.NoError(tb, definitions.Publish([]catalog.Source{{File: file, Text: []byte(load.Definition), Parsed: parsed.Definition}}))
	system := actors.NewSystem(zerolog.Nop())
	h.Router, err = workflow.Start(workflow.Options{Store: h.store, Catalog: definitions, System: system, Log: zerolog.Nop()})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		assert.NoError(tb, errors.Join(h.Stop(context.Background()), system.Stop(context.Background())))
	})
	return h
}

// create makes n instances and returns their ids.
func (h *fixture) create(tb testing.TB, n int) []string {
	tb.Helper()
	ids := make([]string, n)
	for i := range ids {
		reply, err := h.createOne()
		require.NoError(tb, err)
		ids[i] = reply.InstanceID
	}
	return ids
}

func (h *fixture) createOne() (*message.Reply, error) {
	return h.Create(context.Background(), &message.Create{Caller: h.caller, WorkflowID: load.WorkflowID, Public: data.Value(createPublic)})
}

// send sends an instance the event that it gets after n others.
func (h *fixture) send(id string, n int, withHistory bool) (*message.Reply, error) {
	name, content, _ := eventAfter(n)
	return h.Send(context.Background(), &message.Event{
		Caller: h.caller, WorkflowID: load.WorkflowID, InstanceID: id, Name: name, Data: data.Value(content), WithHistory: withHistory,
	})
}

func (h *fixture) read(id string) (*message.Reply, error) {
	return h.Load(context.Background(), &message.Load{Caller: h.caller, WorkflowID: load.WorkflowID, InstanceID: id, WithHistory: true})
}

const createPublic = `{"requester":"bench","days":3,"from":"2026-12-01","reason":"a few days in the mountains"}`

// eventAfter returns the event that an instance gets after n events, with its data as JSON, and the node that it leads to.
func eventAfter(n int) (event, data, node string) {
	if n%2 == 0 {
		return "submit", `{"days":3,"status":"waiting","comment":"my calendar is free, and so is the hut"}`, "review"
	}
	return "return", `{"status":"returned","comment":"please say who stands in for you"}`, "draft"
}
