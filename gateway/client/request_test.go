package client

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/servertest"
)

// TestRequests lists what the caller has created.
func TestRequests(t *testing.T) {
	s := servertest.Start(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	var want, got []string
	for range 3 {
		i, err := c.Create(t.Context(), CreateRequest{WorkflowID: servertest.Workflow})
		require.NoError(t, err)
		want = append(want, i.ID)
	}
	for page, err := range c.RequestsPages(t.Context(), RequestsRequest{Kind: "instance", Category: "current", WorkflowID: servertest.Workflow, Sort: "when", Limit: 2, Count: true}) {
		require.NoError(t, err)
		assert.True(t, page.Count != nil && *page.Count == 3 && len(page.Raw) != 0, "got the number %v in %s", page.Count, page.Raw)
		for _, r := range page.Items {
			got = append(got, r.ID)
			assert.True(t, r.By == servertest.User && r.WorkflowID == servertest.Workflow && r.Category == "current", "got %+v", r)
		}
	}
	if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("got %v, want %v", got, want)
	}
	page, err := c.Requests(t.Context(), RequestsRequest{Query: want[0]})
	assert.True(t, err == nil && len(page.Items) == 1 && page.Next == "" && page.Count == nil, "searched: got %+v, %v", page, err)
	_, err = c.Requests(t.Context(), RequestsRequest{Limit: 1001})
	assert.Error(t, err, "a page of 1,001 is asked for")
}
