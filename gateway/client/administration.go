package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"

	"troupe/gateway/api"
)

func (c *Client) getAdmin(ctx context.Context, path []string, query url.Values, to any) (json.RawMessage, error) {
	a, err := c.ask(ctx, &request{method: http.MethodGet, base: api.AdminPath, path: path, query: query}, to)
	return a.body, err
}

// AuditRequest asks for a part of the audit log.
type AuditRequest struct {
	Since         time.Time // rows from then on; zero: all
	Actor, Action string    // only of this user, and only this action; empty: all
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit int
	After string // Page.Next of the page before; empty is the first page
}

// Audit returns one page of the audit log. It may be empty while more follow. Page.Next is always there: also what comes
// later is behind it.
func (c *Client) Audit(ctx context.Context, r AuditRequest) (page *Page[api.AuditRow], err error) {
	defer asking(&err, "read the audit log")
	q := url.Values{}
	if !r.Since.IsZero() {
		q.Set("since", r.Since.UTC().Format(time.RFC3339Nano))
	}
	setUnlessZero(q, "actor", r.Actor)
	setUnlessZero(q, "action", r.Action)
	setUnlessZero(q, "limit", r.Limit)
	setUnlessZero(q, "after", r.After)
	var list api.AuditPage
	raw, err := c.getAdmin(ctx, []string{"audit"}, q, &list)
	return pageOf(list.Audit, textOf(list.Next), nil, raw, err)
}

// VerifyAudit walks along the audit log.
func (c *Client) VerifyAudit(ctx context.Context) (chain api.AuditChain, err error) {
	defer asking(&err, "verify the audit log")
	_, err = c.getAdmin(ctx, []string{"audit", "verify"}, nil, &chain)
	return chain, err
}

// UsersRequest asks for a part of the users.
type UsersRequest struct {
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit  int
	Cursor string // Page.Next of the page before; empty is the first page
}

// Users returns one page of the users.
func (c *Client) Users(ctx context.Context, r UsersRequest) (page *Page[api.User], err error) {
	defer asking(&err, "list the users")
	q := url.Values{}
	setUnlessZero(q, "limit", r.Limit)
	setUnlessZero(q, "cursor", r.Cursor)
	var list api.UserList
	raw, err := c.getAdmin(ctx, []string{"users"}, q, &list)
	return pageOf(list.Users, textOf(list.Next), nil, raw, err)
}

// UsersPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) UsersPages(ctx context.Context, r UsersRequest) iter.Seq2[*Page[api.User], error] {
	return pages(&r.Cursor, func() (*Page[api.User], error) { return c.Users(ctx, r) })
}

// User returns a user, and the answer as it came.
func (c *Client) User(ctx context.Context, id string) (u api.User, raw json.RawMessage, err error) {
	defer asking(&err, "user %s", id)
	raw, err = c.getAdmin(ctx, []string{"users", id}, nil, &u)
	return u, raw, err
}

// Can says whether a user may send an event to an instance now, and why; it returns the answer as it came, too.
func (c *Client) Can(ctx context.Context, user, event, workflowID, instanceID string) (p api.Permission, raw json.RawMessage, err error) {
	defer asking(&err, "permission of %s", user)
	q := url.Values{"event": {event}, "workflowId": {workflowID}, "instanceId": {instanceID}}
	raw, err = c.getAdmin(ctx, []string{"users", user, "can"}, q, &p)
	return p, raw, err
}

// Roles returns all roles.
func (c *Client) Roles(ctx context.Context) (page *Page[api.UserRole], err error) {
	defer asking(&err, "list the roles")
	var list api.RoleList
	raw, err := c.getAdmin(ctx, []string{"roles"}, nil, &list)
	return pageOf(list.Roles, "", nil, raw, err)
}
