package client

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChangesGoOnBehindTheirCursor(t *testing.T) {
	s, c := started(t, Options{})
	first := s.Create(`{}`, "submit")
	var got []string
	since := ""
	for page, err := range c.ChangePages(t.Context(), ChangesRequest{WorkflowID: "leave", Since: "0", Limit: 1}) {
		require.NoError(t, err)
		for _, change := range page.Items {
			got = append(got, fmt.Sprintf("%s %d %s %s", change.InstanceID, change.Sequence, change.Entry.TransitionEvent, change.States[0].NodeID))
		}
		if since = page.Next; len(page.Items) == 0 {
			break
		}
	}
	want := []string{first + " 1  draft", first + " 2 submit review"}
	assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)
	s.Send(first, "approve")
	page, err := c.Changes(t.Context(), ChangesRequest{Since: since, Wait: time.Second})
	assert.True(t, err == nil && len(page.Items) == 1 && page.Items[0].Sequence == 3, "of all workflows: got %+v, %v, want the third entry", page, err)
	now, err := c.Changes(t.Context(), ChangesRequest{})
	assert.True(t, err == nil && len(now.Items) == 0 && now.Next != "", "without a cursor: got %+v, %v, want none and a cursor", now, err)
	assert.Empty(t, s.Requests()[len(s.Requests())-1].Query, "without anything: got the parameters")
	for _, refused := range []ChangesRequest{{WorkflowID: "a/b"}, {Limit: 1001}} {
		_, err := c.Changes(t.Context(), refused)
		assert.ErrorIs(t, err, ErrInvalid, refused)
	}
	_, err = c.Changes(t.Context(), ChangesRequest{Since: "x"})
	wantStatus(t, err, 400, "InvalidContent")
}
