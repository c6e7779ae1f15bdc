package main

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/bench/internal/service"
	"troupe/bench/load"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// callers is how many goroutines ask at once, like the usual 64 connections.
const callers = 64

// runParallel runs the body on 64 goroutines, whatever the number of cores.
func runParallel(b *testing.B, body func(*testing.PB)) {
	b.Helper()
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(body)
	b.StopTimer()
}

// definition is the workflow of the load.
func definition(tb testing.TB) *statemachine.Definition {
	tb.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	parsed, err := parser.Parse(statemachine.Source{File: "leave-request.yaml", Text: []byte(load.Definition)})
	if err != nil {
		tb.Fatal(err)
	}
	return parsed.Definition
}

// caller is the user of the load as a state machine sees it.
var caller = &statemachine.Caller{ID: load.UserID, Roles: []string{"employee"}, Privileges: []string{"mod-form-portal"}}

// begun is when all instances of the pure layers were created.
var begun = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// created is a new instance of the workflow.
func created(tb testing.TB, d *statemachine.Definition) statemachine.Instance {
	tb.Helper()
	public, _ := load.CreateData()
	result, err := d.Create(statemachine.Creation{
		ID: "01JD0000000000000000000001", Caller: caller, Public: data.Value(public), Now: begun,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return result.Instance
}

// turn is the event that an instance gets after n others.
func turn(n int) statemachine.Event {
	name, content, _ := load.Turn(n)
	return statemachine.Event{Name: statemachine.EventName(name), Data: data.Value(content), Caller: caller, Now: begun}
}

// openStore opens a store on the disk.
func openStore(tb testing.TB) *persistence.Store {
	tb.Helper()
	store, err := persistence.Open(tb.TempDir(), persistence.Options{Log: zerolog.Nop()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	return store
}

// fixture is everything below HTTP, on a real store, with the workflow published.
type fixture struct {
	*service.Service
	directory *identity.Directory
	caller    *identity.Principal
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	text, err := load.BuiltIn().IdentityText()
	if err != nil {
		tb.Fatal(err)
	}
	directory, err := identity.ParseDirectory("identity.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := service.Open(tb.TempDir(), load.Definition, workflow.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &fixture{s, directory, directory.Principal(load.UserID)}
}

// create makes n instances and returns their ids.
func (h *fixture) create(tb testing.TB, n int) []string {
	tb.Helper()
	public, _ := load.CreateData()
	ids := make([]string, n)
	for i := range ids {
		reply, err := h.Create(context.Background(), &message.Create{
			Caller: h.caller, WorkflowID: load.WorkflowID, Public: data.Value(public),
		})
		if err != nil {
			tb.Fatal(err)
		}
		ids[i] = reply.InstanceID
	}
	return ids
}
