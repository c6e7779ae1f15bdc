package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"troupe/gateway/api"
)

// pageMax is the most that a page may be asked to hold.
const pageMax = 1000

// ListRequest asks for instances of a workflow.
type ListRequest struct {
	WorkflowID string
	// Filter is the JSON of a filter; empty matches all.
	Filter string
	// Limit is the most that one page holds, 1 to 1000. 0: InstancePages takes
	// 500; Instances asks for all in one answer, which has no next page and must
	// fit into Options.BodyBytesMax.
	Limit int
	// Cursor is InstancePage.Next of the page before; empty begins at the start.
	// It needs a Limit.
	Cursor string
	// Sort is "_id", an indexed path such as "svcPublic.customerId", or one of
	// them behind "-"; empty is "_id".
	Sort string
	// Fields names what entries have besides _id, workflowId, svcPublic and
	// states: "svcHistory", "svcRedirect", "svcPrivate".
	Fields []string
	// Count asks how many match in all, Explain how they were found.
	Count, Explain bool
}

// InstancePage is a part of a list.
type InstancePage struct {
	Instances []Instance
	// Next is the cursor of the page behind; empty on the last one.
	Next string
	// Count and Explain are nil unless asked for; the latter is an api.Explain.
	Count   *int64
	Explain json.RawMessage
	// Raw is the whole answer as it came.
	Raw json.RawMessage
}

// Instances returns one page.
func (c *Client) Instances(ctx context.Context, r ListRequest) (*InstancePage, error) {
	page, err := c.instances(ctx, &r)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", printable(r.WorkflowID), err)
	}
	return page, nil
}

func (c *Client) instances(ctx context.Context, r *ListRequest) (*InstancePage, error) {
	if err := checkWorkflow(r.WorkflowID); err != nil {
		return nil, err
	}
	if err := checkLimit(r.Limit); err != nil {
		return nil, err
	}
	q := url.Values{}
	setUnlessEmpty(q, "filter", r.Filter)
	if r.Limit > 0 {
		q.Set("limit", strconv.Itoa(r.Limit))
	}
	setUnlessEmpty(q, "cursor", r.Cursor)
	setUnlessEmpty(q, "sort", r.Sort)
	setUnlessEmpty(q, "fields", strings.Join(r.Fields, ","))
	if r.Count {
		q.Set("count", "true")
	}
	if r.Explain {
		q.Set("explain", "true")
	}
	a, err := c.call(ctx, &request{method: http.MethodGet, path: []string{"instances", r.WorkflowID}, query: q})
	if err != nil {
		return nil, err
	}
	var list api.InstanceList
	if err := a.decode(&list); err != nil {
		return nil, err
	}
	page := &InstancePage{
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

// InstancePages returns all pages from r.Cursor on, one call each. Count and
// Explain are asked for with the first only. An error is the last thing it
// yields. With a Sort by a path, an instance whose value changes meanwhile may
// be there twice or not at all; in the order of _id each has its place.
func (c *Client) InstancePages(ctx context.Context, r ListRequest) iter.Seq2[*InstancePage, error] {
	if r.Limit == 0 {
		r.Limit = pageMax / 2
	}
	return pages(r.Cursor, func(cursor string) (*InstancePage, string, error) {
		r.Cursor = cursor
		page, err := c.Instances(ctx, r)
		r.Count, r.Explain = false, false
		if err != nil {
			return nil, "", err
		}
		return page, page.Next, nil
	})
}

// HistoryRequest asks for a part of an instance's history.
type HistoryRequest struct {
	WorkflowID, InstanceID string
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit int
	// Cursor is HistoryPage.Next of the page before; empty begins at the oldest.
	Cursor string
}

// HistoryPage is a part of a history, oldest entry first.
type HistoryPage struct {
	Entries []HistoryEntry
	// Next is the cursor of the page behind; empty on the last one.
	Next string
	// Raw is the whole answer as it came.
	Raw json.RawMessage
}

// HistoryEntry is an entry as the service answered it.
type HistoryEntry struct {
	api.HistoryEntry
	// Raw is the entry as it came.
	Raw json.RawMessage
}

// History returns one page of an instance's history.
func (c *Client) History(ctx context.Context, r HistoryRequest) (*HistoryPage, error) {
	page, err := c.history(ctx, &r)
	if err != nil {
		return nil, fmt.Errorf("history of %s/%s: %w", printable(r.WorkflowID), printable(r.InstanceID), err)
	}
	return page, nil
}

func (c *Client) history(ctx context.Context, r *HistoryRequest) (*HistoryPage, error) {
	if err := checkInstance(r.WorkflowID, r.InstanceID); err != nil {
		return nil, err
	}
	if err := checkLimit(r.Limit); err != nil {
		return nil, err
	}
	q := url.Values{}
	if r.Limit > 0 {
		q.Set("limit", strconv.Itoa(r.Limit))
	}
	setUnlessEmpty(q, "cursor", r.Cursor)
	a, err := c.call(ctx, &request{
		method: http.MethodGet, path: []string{"instance", r.WorkflowID, r.InstanceID, "history"}, query: q,
	})
	if err != nil {
		return nil, err
	}
	var list api.HistoryList
	if err := a.decode(&list); err != nil {
		return nil, err
	}
	page := &HistoryPage{Entries: make([]HistoryEntry, len(list.Entries)), Next: list.Next, Raw: a.body}
	for i, text := range list.Entries {
		page.Entries[i].Raw = text
		if err := decode(text, &page.Entries[i].HistoryEntry); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// HistoryPages returns all pages from r.Cursor on, one call each. An error is
// the last thing it yields.
func (c *Client) HistoryPages(ctx context.Context, r HistoryRequest) iter.Seq2[*HistoryPage, error] {
	if r.Limit == 0 {
		r.Limit = pageMax / 2
	}
	return pages(r.Cursor, func(cursor string) (*HistoryPage, string, error) {
		r.Cursor = cursor
		page, err := c.History(ctx, r)
		if err != nil {
			return nil, "", err
		}
		return page, page.Next, nil
	})
}

// pages follows the cursors. load returns a page and the cursor of the next.
func pages[P any](first string, load func(cursor string) (P, string, error)) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		for cursor := first; ; {
			page, next, err := load(cursor)
			if !yield(page, err) || err != nil || next == "" {
				return
			}
			if next == cursor {
				var none P
				yield(none, fmt.Errorf("%w: the next page is the same page", ErrProtocol))
				return
			}
			cursor = next
		}
	}
}

func checkLimit(limit int) error {
	if limit < 0 || limit > pageMax {
		return invalid("a limit must be 1 to %d", pageMax)
	}
	return nil
}

func setUnlessEmpty(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}
