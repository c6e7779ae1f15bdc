package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"time"

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
	// Cursor is Page.Next of the page before; empty begins at the start. It needs a Limit.
	Cursor string
	// Sort is "_id", an indexed path such as "svcPublic.customerId", or one of them behind "-"; empty is "_id".
	Sort string
	// Fields names what entries have besides _id, workflowId, svcPublic and
	// states: "svcHistory", "svcRedirect", "svcPrivate".
	Fields         []string
	Count, Explain bool // Count asks how many match in all, Explain how they were found
}

// Page is a part of a list.
type Page[T any] struct {
	Items   []T
	Next    string          // the cursor of the page behind; empty on the last one
	Count   *int64          // nil when it was not asked for, or would have taken too long
	Explain json.RawMessage // an api.Explain of Instances; nil unless asked for
	Raw     json.RawMessage // the whole answer as it came
}

// Instances returns one page.
func (c *Client) Instances(ctx context.Context, r ListRequest) (page *Page[Instance], err error) {
	defer asking(&err, "list %s", r.WorkflowID)
	if err := checkWorkflow(r.WorkflowID); err != nil {
		return nil, err
	}
	q := url.Values{}
	setUnlessZero(q, "filter", r.Filter)
	setUnlessZero(q, "sort", r.Sort)
	setUnlessZero(q, "fields", strings.Join(r.Fields, ","))
	setUnlessZero(q, "count", r.Count)
	setUnlessZero(q, "explain", r.Explain)
	var list api.InstanceList
	raw, err := c.list(ctx, []string{"instances", r.WorkflowID}, q, r.Limit, r.Cursor, &list)
	if err != nil {
		return nil, err
	}
	page = &Page[Instance]{Items: make([]Instance, len(list.Instances)), Next: list.Next, Count: list.Count, Explain: list.Explain, Raw: raw}
	for i, record := range list.Instances {
		if err := page.Items[i].read(record); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// InstancePages returns all pages from r.Cursor on, one call each. Count and Explain are asked for with the first only.
// An error is the last thing it yields. With a Sort by a path, an instance whose value changes meanwhile may be there
// twice or not at all; in the order of _id each has its place.
func (c *Client) InstancePages(ctx context.Context, r ListRequest) iter.Seq2[*Page[Instance], error] {
	if r.Limit == 0 {
		r.Limit = pageMax / 2
	}
	return pages(&r.Cursor, func() (*Page[Instance], error) {
		page, err := c.Instances(ctx, r)
		r.Count, r.Explain = false, false
		return page, err
	})
}

// HistoryRequest asks for a part of an instance's history.
type HistoryRequest struct {
	WorkflowID, InstanceID string
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit int
	// Cursor is Page.Next of the page before, in the same order; empty begins at the oldest,
	// with NewestFirst at the newest.
	Cursor      string
	NewestFirst bool // NewestFirst asks for the entries from the newest to the oldest
	Data        bool // Data asks for what the events brought
}

// HistoryEntry is an entry as the service answered it.
type HistoryEntry struct {
	api.HistoryEntry
	Raw json.RawMessage // the entry as it came
}

// History returns one page of an instance's history.
func (c *Client) History(ctx context.Context, r HistoryRequest) (page *Page[HistoryEntry], err error) {
	defer asking(&err, "history of %s/%s", r.WorkflowID, r.InstanceID)
	if err := checkInstance(r.WorkflowID, r.InstanceID); err != nil {
		return nil, err
	}
	q := url.Values{}
	if r.Data {
		q.Set("fields", "data")
	}
	if r.NewestFirst {
		q.Set("order", "desc")
	}
	var list api.HistoryList
	raw, err := c.list(ctx, []string{"instance", r.WorkflowID, r.InstanceID, "history"}, q, r.Limit, r.Cursor, &list)
	if err != nil {
		return nil, err
	}
	page = &Page[HistoryEntry]{Items: make([]HistoryEntry, len(list.Entries)), Next: list.Next, Raw: raw}
	for i, text := range list.Entries {
		page.Items[i].Raw = text
		if err := decode(text, &page.Items[i].HistoryEntry); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// HistoryPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) HistoryPages(ctx context.Context, r HistoryRequest) iter.Seq2[*Page[HistoryEntry], error] {
	if r.Limit == 0 {
		r.Limit = pageMax / 2
	}
	return pages(&r.Cursor, func() (*Page[HistoryEntry], error) { return c.History(ctx, r) })
}

func pageOf[T any](items []T, next string, count *int64, raw json.RawMessage, err error) (*Page[T], error) {
	if err != nil {
		return nil, err
	}
	return &Page[T]{Items: items, Next: next, Count: count, Raw: raw}, nil
}

// pages follows the cursors, each of which it puts where load reads it.
func pages[T any](cursor *string, load func() (*Page[T], error)) iter.Seq2[*Page[T], error] {
	first := *cursor
	return func(yield func(*Page[T], error) bool) {
		for *cursor = first; ; {
			page, err := load()
			if !yield(page, err) || err != nil || page.Next == "" {
				return
			}
			if page.Next == *cursor {
				yield(nil, fmt.Errorf("%w: the next page is the same page", ErrProtocol))
				return
			}
			*cursor = page.Next
		}
	}
}

// list reads a page of a list into a struct of package api.
func (c *Client) list(ctx context.Context, path []string, q url.Values, limit int, cursor string, to any) (raw json.RawMessage, err error) {
	if limit < 0 || limit > pageMax {
		return nil, invalid("a limit must be 1 to %d", pageMax)
	}
	setUnlessZero(q, "limit", limit)
	setUnlessZero(q, "cursor", cursor)
	return c.get(ctx, path, q, to)
}

func setUnlessZero[T comparable](q url.Values, name string, value T) {
	if zero := *new(T); value != zero {
		q.Set(name, fmt.Sprint(value))
	}
}

// ChangesRequest asks for what was committed behind a cursor.
type ChangesRequest struct {
	// WorkflowID is the one workflow that is of interest; empty: all that the caller may read.
	WorkflowID string
	// Since is Page.Next of the page before, or Notice.ID of the watch of a workflow. Empty: the
	// present; "0": the oldest that is kept.
	Since string
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit int
	// Wait is how long the service waits when there is nothing, in whole seconds, at most 30.
	Wait time.Duration
}

// Change is an entry as the service answered it.
type Change struct {
	api.Watched
	Raw json.RawMessage // the change as it came
}

// Changes returns one page, whose Next is never empty. Each entry comes at least once, those of an instance in their order; it may have none, also
// when more follows it. An *Error of status 410 says that the service no longer has what follows the cursor.
func (c *Client) Changes(ctx context.Context, r ChangesRequest) (page *Page[Change], err error) {
	defer asking(&err, "changes of %s", cmp.Or(r.WorkflowID, everyWorkflow))
	var list api.ChangeList
	raw, err := c.changes(ctx, "changes", &r, &list)
	if err != nil {
		return nil, err
	}
	page = &Page[Change]{Items: make([]Change, len(list.Changes)), Next: list.Next, Raw: raw}
	for i, text := range list.Changes {
		page.Items[i].Raw = text
		if err := decode(text, &page.Items[i].Watched); err != nil {
			return nil, err
		}
	}
	return page, nil
}

const everyWorkflow = "all workflows"

// Export is Changes with each change as the row of an export, which needs mod-workflows: with the data of its event.
func (c *Client) Export(ctx context.Context, r ChangesRequest) (page *Page[json.RawMessage], err error) {
	defer asking(&err, "export of %s", cmp.Or(r.WorkflowID, everyWorkflow))
	var list api.ExportList
	raw, err := c.changes(ctx, "export", &r, &list)
	if err != nil {
		return nil, err
	}
	return &Page[json.RawMessage]{Items: list.Rows, Next: list.Next, Raw: raw}, nil
}

func (c *Client) changes(ctx context.Context, path string, r *ChangesRequest, to any) (json.RawMessage, error) {
	if r.WorkflowID != "" {
		if err := checkWorkflow(r.WorkflowID); err != nil {
			return nil, err
		}
	}
	q := url.Values{}
	setUnlessZero(q, "since", r.Since)
	setUnlessZero(q, "workflowId", r.WorkflowID)
	setUnlessZero(q, "wait", int(r.Wait/time.Second))
	return c.list(ctx, []string{path}, q, r.Limit, "", to)
}

// ChangePages returns page after page from r.Since on, also empty ones, until the caller stops: anyone who keeps
// Page.Next with what it made of the page misses nothing. An error is the last thing it yields.
func (c *Client) ChangePages(ctx context.Context, r ChangesRequest) iter.Seq2[*Page[Change], error] {
	return func(yield func(*Page[Change], error) bool) {
		for {
			page, err := c.Changes(ctx, r)
			if !yield(page, err) || err != nil {
				return
			}
			r.Since = page.Next
		}
	}
}

// RequestsRequest asks for a part of what the caller has created.
type RequestsRequest struct {
	// Kind is "form", "checklist" or "instance"; empty is forms and instances. Category is "current", "submitted" or "archived"; empty is all.
	Kind, Category    string
	WorkflowID, Query string // WorkflowID and Query narrow the list; empty: they do not
	Sort              string // "-when", "when" or "name"; empty is "-when"
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 50.
	Limit  int
	Cursor string // Page.Next of the page before; empty is the first page
	Count  bool   // Count asks for the number of all
}

// Requests returns one page of what the caller has created. It may be shorter than the limit, also empty, and not the last.
func (c *Client) Requests(ctx context.Context, r RequestsRequest) (page *Page[api.Request], err error) {
	defer asking(&err, "list requests")
	q := url.Values{}
	setUnlessZero(q, "kind", r.Kind)
	setUnlessZero(q, "category", r.Category)
	setUnlessZero(q, "workflowId", r.WorkflowID)
	setUnlessZero(q, "q", r.Query)
	setUnlessZero(q, "sort", r.Sort)
	setUnlessZero(q, "count", r.Count)
	var list struct {
		Forms []api.Request
		Next  *string
		Count *int64
	}
	raw, err := c.list(ctx, []string{"requests"}, q, r.Limit, r.Cursor, &list)
	return pageOf(list.Forms, textOf(list.Next), list.Count, raw, err)
}

// RequestsPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) RequestsPages(ctx context.Context, r RequestsRequest) iter.Seq2[*Page[api.Request], error] {
	return pages(&r.Cursor, func() (*Page[api.Request], error) { return c.Requests(ctx, r) })
}
