package workflow_test

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"troupe/actors/query"
	"troupe/actors/workflow/workflowtest"
)

// queries is a service over the instances of a router.
type queries struct {
	*workflowtest.Router
	*query.Service
	t testing.TB
	o query.Options
}

func startQueries(t testing.TB, o query.Options) *queries {
	t.Helper()
	o.QueriesMax, o.ListsMax = cmp.Or(o.QueriesMax, 2), cmp.Or(o.ListsMax, 2)
	o.QueriesOpenMax, o.ListsOpenMax = cmp.Or(o.QueriesOpenMax, 32), cmp.Or(o.ListsOpenMax, 32)
	o.QueryWaitMax, o.TimeMax = cmp.Or(o.QueryWaitMax, 2*time.Second), cmp.Or(o.TimeMax, time.Minute)
	o.InFlight = new(atomic.Int64)
	h := &queries{Router: workflowtest.Start(t, workflowtest.Options{Shards: 8}), t: t, o: o}
	h.serve()
	return h
}

func (h *queries) serve() {
	h.o.Store, h.o.Catalog, h.o.Clock = h.Store, h.Catalog, h.Clock
	h.Service = query.New(h.o)
	h.t.Cleanup(h.Service.Stop)
}

func (h *queries) restart() { h.Restart(); h.serve() }

func (h *queries) slotsHeld() int {
	queries, lists := h.Open()
	return queries + lists
}

func (h *queries) list(req query.Request) (ids []string, end *query.End, err error) {
	return workflowtest.IDs(h.t, h.Query, req)
}

// pages asks page after page and returns all of it.
func (h *queries) pages(req query.Request) (ids []string, err error) {
	ids = []string{}
	for n := 0; ; n++ {
		page, end, err := h.list(req)
		if err != nil {
			return ids, err
		}
		if ids = append(ids, page...); end.Next == "" {
			return ids, nil
		}
		if len(page) > req.Limit || n > 20_000 {
			return ids, fmt.Errorf("page %d has %d entries, limit %d", n, len(page), req.Limit)
		}
		req.Cursor = end.Next
	}
}
