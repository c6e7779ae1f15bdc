package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"

	"troupe/gateway/api"
)

// RequestsRequest asks for a part of what the caller has created.
type RequestsRequest struct {
	// Kind is "form", "checklist" or "instance"; empty is forms and instances. Category is "current", "submitted" or "archived"; empty is all.
	Kind, Category    string
	WorkflowID, Query string // WorkflowID and Query narrow the list; empty: they do not
	Sort              string // "-when", "when" or "name"; empty is "-when"
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 50.
	Limit  int
	Cursor string // RequestsPage.Next of the page before; empty is the first page
	Count  bool   // Count asks for the number of all
}

// RequestsPage is a part of what the caller has created.
type RequestsPage struct {
	Requests []api.Request
	Next     string          // the cursor of the page behind; empty on the last one
	Count    *int64          // nil when it was not asked for, or would have taken too long
	Raw      json.RawMessage // the whole answer as it came
}

// Requests returns one page of what the caller has created. It may be shorter than the limit, also empty, and not the last.
func (c *Client) Requests(ctx context.Context, r RequestsRequest) (page *RequestsPage, err error) {
	defer asking(&err, "list requests")
	if err := checkLimit(r.Limit); err != nil {
		return nil, err
	}
	q := url.Values{}
	setUnlessZero(q, "kind", r.Kind)
	setUnlessZero(q, "category", r.Category)
	setUnlessZero(q, "workflowId", r.WorkflowID)
	setUnlessZero(q, "q", r.Query)
	setUnlessZero(q, "sort", r.Sort)
	setUnlessZero(q, "limit", r.Limit)
	setUnlessZero(q, "cursor", r.Cursor)
	setUnlessZero(q, "count", r.Count)
	var list struct {
		Forms []api.Request
		Next  *string
		Count *int64
	}
	a, err := c.get(ctx, []string{"requests"}, q, &list)
	if err != nil {
		return nil, err
	}
	return &RequestsPage{Requests: list.Forms, Next: textOf(list.Next), Count: list.Count, Raw: a.body}, nil
}

// RequestsPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) RequestsPages(ctx context.Context, r RequestsRequest) iter.Seq2[*RequestsPage, error] {
	return pages(r.Cursor, func(cursor string) (*RequestsPage, error) {
		r.Cursor = cursor
		return c.Requests(ctx, r)
	})
}

func (p *RequestsPage) next() string { return p.Next }
