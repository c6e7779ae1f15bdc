package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strings"

	"troupe/gateway/api"
)

const pageMax = 1000

// ListRequest asks for instances of a workflow.
type ListRequest struct {
	WorkflowID string
	Filter     string // the JSON of a filter; empty matches all
	// Limit is the most that one page holds, 1 to 1000. 0: InstancePages takes 500; Instances asks for all in one
	// answer, which has no next page and must fit into Options.BodyBytesMax.
	Limit int
	// Cursor is InstancePage.Next of the page before; empty begins at the start. It needs a Limit.
	Cursor string
	// Sort is "_id", an indexed path such as "svcPublic.customerId", or one of them behind "-"; empty is "_id".
	Sort string
	// Fields names what entries have besides _id, workflowId, svcPublic and
	// states: "svcHistory", "svcRedirect", "svcPrivate".
	Fields         []string
	Count, Explain bool // Count asks how many match in all, Explain how they were found
}

// InstancePage is a part of a list.
type InstancePage struct {
	Instances []Instance
	Next      string // the cursor of the page behind; empty on the last one
	Count     *int64 // Count and Explain are nil unless asked for; the latter is an api.Explain
	Explain   json.RawMessage
	Raw       json.RawMessage // the whole answer as it came
}

// Instances returns one page.
func (c *Client) Instances(ctx context.Context, r ListRequest) (page *InstancePage, err error) {
	defer asking(&err, "list %s", r.WorkflowID)
	if err := checkWorkflow(r.WorkflowID); err != nil {
		return nil, err
	}
	if err := checkLimit(r.Limit); err != nil {
		return nil, err
	}
	q := url.Values{}
	setUnlessZero(q, "filter", r.Filter)
	setUnlessZero(q, "limit", r.Limit)
	setUnlessZero(q, "cursor", r.Cursor)
	setUnlessZero(q, "sort", r.Sort)
	setUnlessZero(q, "fields", strings.Join(r.Fields, ","))
	setUnlessZero(q, "count", r.Count)
	setUnlessZero(q, "explain", r.Explain)
	var list api.InstanceList
	a, err := c.get(ctx, []string{"instances", r.WorkflowID}, q, &list)
	if err != nil {
		return nil, err
	}
	page = &InstancePage{
		Instances: make([]Instance, len(list.Instances)), Next: list.Next,
		Count: list.Count, Explain: list.Explain, Raw: a.body,
	}
	for i, record := range list.Instances {
		if err := page.Instances[i].read(record); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// InstancePages returns all pages from r.Cursor on, one call each. Count and Explain are asked for with the first only.
// An error is the last thing it yields. With a Sort by a path, an instance whose value changes meanwhile may be there
// twice or not at all; in the order of _id each has its place.
func (c *Client) InstancePages(ctx context.Context, r ListRequest) iter.Seq2[*InstancePage, error] {
	if r.Limit == 0 {
		r.Limit = pageMax / 2
	}
	return pages(r.Cursor, func(cursor string) (*InstancePage, error) {
		r.Cursor = cursor
		page, err := c.Instances(ctx, r)
		r.Count, r.Explain = false, false
		return page, err
	})
}

func (p *InstancePage) next() string { return p.Next }

// HistoryRequest asks for a part of an instance's history.
type HistoryRequest struct {
	WorkflowID, InstanceID string
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit int
	// Cursor is HistoryPage.Next of the page before, in the same order; empty begins at the oldest,
	// with NewestFirst at the newest.
	Cursor      string
	NewestFirst bool // NewestFirst asks for the entries from the newest to the oldest
	Data        bool // Data asks for what the events brought
}

// HistoryPage is a part of a history, in the order that was asked for.
type HistoryPage struct {
	Entries []HistoryEntry
	Next    string          // the cursor of the page behind; empty on the last one
	Raw     json.RawMessage // the whole answer as it came
}

// HistoryEntry is an entry as the service answered it.
type HistoryEntry struct {
	api.HistoryEntry
	Raw json.RawMessage // the entry as it came
}

// History returns one page of an instance's history.
func (c *Client) History(ctx context.Context, r HistoryRequest) (page *HistoryPage, err error) {
	defer asking(&err, "history of %s/%s", r.WorkflowID, r.InstanceID)
	if err := checkInstance(r.WorkflowID, r.InstanceID); err != nil {
		return nil, err
	}
	if err := checkLimit(r.Limit); err != nil {
		return nil, err
	}
	q := url.Values{}
	setUnlessZero(q, "limit", r.Limit)
	setUnlessZero(q, "cursor", r.Cursor)
	if r.Data {
		q.Set("fields", "data")
	}
	if r.NewestFirst {
		q.Set("order", "desc")
	}
	var list api.HistoryList
	a, err := c.get(ctx, []string{"instance", r.WorkflowID, r.InstanceID, "history"}, q, &list)
	if err != nil {
		return nil, err
	}
	page = &HistoryPage{Entries: make([]HistoryEntry, len(list.Entries)), Next: list.Next, Raw: a.body}
	for i, text := range list.Entries {
		page.Entries[i].Raw = text
		if err := decode(text, &page.Entries[i].HistoryEntry); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// HistoryPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) HistoryPages(ctx context.Context, r HistoryRequest) iter.Seq2[*HistoryPage, error] {
	if r.Limit == 0 {
		r.Limit = pageMax / 2
	}
	return pages(r.Cursor, func(cursor string) (*HistoryPage, error) {
		r.Cursor = cursor
		return c.History(ctx, r)
	})
}

func (p *HistoryPage) next() string { return p.Next }

// pages follows the cursors.
func pages[P interface{ next() string }](first string, load func(cursor string) (P, error)) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		for cursor := first; ; {
			page, err := load(cursor)
			if !yield(page, err) || err != nil || page.next() == "" {
				return
			}
			if page.next() == cursor {
				var none P
				yield(none, fmt.Errorf("%w: the next page is the same page", ErrProtocol))
				return
			}
			cursor = page.next()
		}
	}
}

func checkLimit(limit int) error {
	if limit < 0 || limit > pageMax {
		return invalid("a limit must be 1 to %d", pageMax)
	}
	return nil
}

func setUnlessZero[T comparable](q url.Values, name string, value T) {
	if zero := *new(T); value != zero {
		q.Set(name, fmt.Sprint(value))
	}
}
