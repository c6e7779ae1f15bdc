package gateway

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/query"
)

// TestPageThatFailsLate holds that a page whose list breaks off is a status, however
// much of it there was.
func TestPageThatFailsLate(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{query: func(_ context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
		for range 100 {
			if err := item(bigItem); err != nil {
				return nil, err
			}
		}
		return nil, fmt.Errorf("query: %w", failure.ErrBusy)
	}})
	a := s.do(t, get("/workflow/api/v1/instances/leave?limit=100"))
	assert.True(t, a.Status == 503 && a.Header.Get("Link") == "", "got %d with Link %q, want 503 without", a.Status, a.Header.Get("Link"))
}

// TestExplainThatCannotBeWritten holds that a fault behind the Link takes it
// away.
func TestExplainThatCannotBeWritten(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{query: func(context.Context, *query.Request, func([]byte) error) (*query.End, error) {
		return &query.End{Next: "c1", Explain: &query.Explain{Plan: "scan", Milliseconds: math.NaN()}}, nil
	}})
	a := s.do(t, request{Method: "GET", Path: "/workflow/api/v1/instances/leave?limit=1&explain=true", Headers: []string{withModToken}})
	assert.True(t, a.Status == 500 && a.Label() == "Internal" && a.Header.Get("Link") == "", "%v %v %v", a.Status, a.Body, a.Header.Get("Link"))
}
