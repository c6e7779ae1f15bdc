package million

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/bench/internal/service"
	"troupe/bench/load"
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

type store struct {
	*service.Service
	// ready is how long it took from opening the store until it took requests.
	ready time.Duration
}

// open starts the service on a folder. Instances fall asleep as soon as they may, so
// that memory does not depend on how long filling took.
func open(dir string) (*store, error) {
	begun := time.Now()
	s, err := service.Open(dir, definition, workflow.Options{IdleAfter: time.Second})
	return &store{s, time.Since(begun)}, err
}

// public is svcPublic of the n-th instance: 100 orders a customer, due dates spread over a thousand days.
func public(n int) data.Value {
	return data.Value(fmt.Sprintf(
		`{"customer":"c-%06d","due":"%s","total":%d,"lines":[{"sku":"A-%03d","count":%d},{"sku":"B-%03d","count":1}],"note":"leave it at the door, please; the bell is broken"}`,
		n/100, day(n%1000), n%5000, n%250, 1+n%9, n%77))
}

func day(n int) string {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n).Format(time.DateOnly)
}

func (h *store) fill(ctx context.Context, count int, progress io.Writer) error {
	var done atomic.Int64
	return load.Each(ctx, 256, count, func(ctx context.Context, n int) error {
		if err := h.make(ctx, n); err != nil {
			return fmt.Errorf("instance %d: %w", n, err)
		}
		if made := done.Add(1); made%100_000 == 0 {
			fmt.Fprintf(progress, "%d instances\n", made)
		}
		return nil
	})
}

func (h *store) make(ctx context.Context, n int) error {
	reply, err := h.Create(ctx, &message.Create{Caller: clerk, WorkflowID: workflowID, Public: public(n)})
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

func (h *store) event(ctx context.Context, id, name string) error {
	_, err := h.Send(ctx, &message.Event{Caller: clerk, WorkflowID: workflowID, InstanceID: id, Name: name})
	return err
}

func (h *store) count(ctx context.Context) (int64, error) {
	end, err := h.Query(ctx, &query.Request{Caller: clerk, WorkflowID: workflowID, Limit: 1, Count: true}, func([]byte) error { return nil })
	if err != nil {
		return 0, err
	}
	return end.Count, nil
}
