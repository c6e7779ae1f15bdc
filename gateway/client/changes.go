package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"time"

	"troupe/gateway/api"
)

// ChangesRequest asks for what was committed behind a cursor.
type ChangesRequest struct {
	// WorkflowID is the one workflow that is of interest; empty: all that the caller may read.
	WorkflowID string
	// Since is ChangePage.Next of the page before, or Notice.ID of the watch of a workflow. Empty: the
	// present; "0": the oldest that is kept.
	Since string
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit int
	// Wait is how long the service waits when there is nothing, in whole seconds, at most 30.
	Wait time.Duration
}

// ChangePage is some changes in order.
type ChangePage struct {
	Changes []Change
	// Next is the cursor behind them. It is never empty.
	Next string
	Raw  json.RawMessage // the whole answer as it came
}

// Change is an entry as the service answered it.
type Change struct {
	api.Watched
	Raw json.RawMessage // the change as it came
}

// Changes returns one page. Each entry comes at least once, those of an instance in their order; it may have none, also
// when more comes behind it. An *Error of status 410 says that the service no longer has what comes behind the cursor.
func (c *Client) Changes(ctx context.Context, r ChangesRequest) (page *ChangePage, err error) {
	defer asking(&err, "changes of %s", r.WorkflowID)
	if r.WorkflowID != "" {
		if err := checkWorkflow(r.WorkflowID); err != nil {
			return nil, err
		}
	}
	if err := checkLimit(r.Limit); err != nil {
		return nil, err
	}
	q := url.Values{}
	setUnlessZero(q, "since", r.Since)
	setUnlessZero(q, "workflowId", r.WorkflowID)
	setUnlessZero(q, "limit", r.Limit)
	setUnlessZero(q, "wait", int(r.Wait/time.Second))
	var list api.ChangeList
	a, err := c.get(ctx, []string{"changes"}, q, &list)
	if err != nil {
		return nil, err
	}
	page = &ChangePage{Changes: make([]Change, len(list.Changes)), Next: list.Next, Raw: a.body}
	for i, text := range list.Changes {
		page.Changes[i].Raw = text
		if err := decode(text, &page.Changes[i].Watched); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// ChangePages returns page after page from r.Since on, also empty ones, until the caller stops: whoever keeps
// ChangePage.Next with what it made of the page misses nothing. An error is the last thing it yields.
func (c *Client) ChangePages(ctx context.Context, r ChangesRequest) iter.Seq2[*ChangePage, error] {
	return func(yield func(*ChangePage, error) bool) {
		for {
			page, err := c.Changes(ctx, r)
			if !yield(page, err) || err != nil {
				return
			}
			r.Since = page.Next
		}
	}
}
