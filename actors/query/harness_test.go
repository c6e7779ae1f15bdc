package query_test

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"troupe/actors/query"
	"troupe/actors/workflow/workflowtest"
)

var (
	stock, oneOf        = workflowtest.Stock, workflowtest.OneOf[string]
	john, mary, eve     = workflowtest.John, workflowtest.Mary, workflowtest.Eve
	member, guest, boss = workflowtest.Member, workflowtest.Guest, workflowtest.Boss
)

// harness is a service over the instances of a router.
type harness struct {
	*workflowtest.Router
	*query.Service
	t testing.TB
	o query.Options
}

func start(t testing.TB, o query.Options) *harness {
	t.Helper()
	o.QueriesMax, o.ListsMax = cmp.Or(o.QueriesMax, 2), cmp.Or(o.ListsMax, 2)
	o.QueriesOpenMax, o.ListsOpenMax = cmp.Or(o.QueriesOpenMax, 32), cmp.Or(o.ListsOpenMax, 32)
	o.QueryWaitMax, o.TimeMax = cmp.Or(o.QueryWaitMax, 2*time.Second), cmp.Or(o.TimeMax, time.Minute)
	o.InFlight = new(atomic.Int64)
	h := &harness{Router: workflowtest.Start(t, workflowtest.Options{Shards: 8}), t: t, o: o}
	h.serve()
	return h
}

func (h *harness) serve() {
	h.o.Store, h.o.Catalog, h.o.Clock = h.Store, h.Catalog, h.Clock
	h.Service = query.New(h.o)
	h.t.Cleanup(h.Service.Stop)
}

func (h *harness) restart() { h.Restart(); h.serve() }

func (h *harness) slotsHeld() int {
	queries, lists := h.Open()
	return queries + lists
}

func (h *harness) list(req query.Request) (ids []string, end *query.End, err error) {
	return workflowtest.IDs(h.t, h.Query, req)
}

// pages asks page after page and returns all of it.
func (h *harness) pages(req query.Request) (ids []string, err error) {
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
