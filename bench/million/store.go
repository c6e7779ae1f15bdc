package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/identity"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

//go:embed order.yaml
var definition string

const workflowID = "order"

// inspectedEvery makes one instance in so many an inspected one: what the query
// by node looks for. One in three is paid.
const inspectedEvery = 10_000

// clerk may do everything.
var clerk = &identity.Principal{ID: "clerk", Roles: []string{"clerk"}, Privileges: []string{string(identity.Workflows)}}

// harness is the service below HTTP.
type harness struct {
	store  *persistence.Store
	system *actors.System
	*workflow.Router
	// ready is how long it took from opening the store until it took requests.
	ready time.Duration
}

// open starts the service on a folder, as the program does.
func open(dir string) (h *harness, err error) {
	begun := time.Now()
	h = &harness{}
	if h.store, err = persistence.Open(dir, persistence.Options{Log: zerolog.Nop()}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.store.Close())
		}
	}()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return nil, err
	}
	definitions, err := catalog.Open(h.store, parser, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(statemachine.Source{File: "order.yaml", Text: []byte(definition)})
	if err != nil {
		return nil, err
	}
	if err := definitions.Publish([]catalog.Source{{File: "order.yaml", Text: []byte(definition), Parsed: parsed.Definition}}); err != nil {
		return nil, err
	}
	h.system = actors.NewSystem(zerolog.Nop())
	// Instances fall asleep as soon as they may, so that memory does not depend on
	// how long filling took.
	if h.Router, err = workflow.Start(workflow.Options{
		Store: h.store, System: h.system, Catalog: definitions, Log: zerolog.Nop(), IdleAfter: time.Second,
	}); err != nil {
		return nil, errors.Join(err, h.system.Stop(context.Background()))
	}
	h.ready = time.Since(begun)
	return h, nil
}

func (h *harness) close() error {
	err := errors.Join(h.Stop(context.Background()), h.system.Stop(context.Background()))
	return errors.Join(err, h.store.Close())
}

// public is svcPublic of the n-th instance: 100 orders a customer, due dates
// spread over a thousand days.
func public(n int) data.Value {
	return data.Value(fmt.Sprintf(
		`{"customer":"c-%06d","due":"%s","total":%d,"lines":[{"sku":"A-%03d","count":%d},{"sku":"B-%03d","count":1}],"note":"leave it at the door, please; the bell is broken"}`,
		n/100, day(n%1000), n%5000, n%250, 1+n%9, n%77))
}

func day(n int) string {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n).Format(time.DateOnly)
}

// fill makes instances until there are count, on many goroutines, because one
// sync serves all creates that wait for it.
func (h *harness) fill(ctx context.Context, count int, progress io.Writer) error {
	const makers = 256
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var all sync.WaitGroup
	for range makers {
		all.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1) - 1)
				if n >= count {
					return
				}
				if err := h.make(ctx, n); err != nil {
					cancel(fmt.Errorf("instance %d: %w", n, err))
					return
				}
				if made := done.Add(1); made%100_000 == 0 {
					fmt.Fprintf(progress, "%d instances\n", made)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (h *harness) make(ctx context.Context, n int) error {
	reply, err := h.Create(ctx, &workflow.CreateRequest{Caller: clerk, WorkflowID: workflowID, Public: public(n)})
	if err != nil {
		return err
	}
	switch {
	case n%inspectedEvery == 0:
		return h.event(ctx, reply.InstanceID, "inspect")
	case n%3 == 0:
		return h.event(ctx, reply.InstanceID, "pay")
	}
	return nil
}

func (h *harness) event(ctx context.Context, id, name string) error {
	_, err := h.Send(ctx, &workflow.EventRequest{Caller: clerk, WorkflowID: workflowID, InstanceID: id, Name: name})
	return err
}

// count is how many instances there are.
func (h *harness) count(ctx context.Context) (int64, error) {
	end, err := h.Query(ctx, &query.Request{Caller: clerk, WorkflowID: workflowID, Limit: 1, Count: true}, func([]byte) error { return nil })
	if err != nil {
		return 0, err
	}
	return end.Count, nil
}
