package client

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestChangesGoOnBehindTheirCursor(t *testing.T) {
	s, c := started(t, Options{})
	first := s.Create(`{}`, "submit")
	var got []string
	since := ""
	for page, err := range c.ChangePages(t.Context(), ChangesRequest{WorkflowID: "leave", Since: "0", Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range page.Items {
			got = append(got, fmt.Sprintf("%s %d %s %s", change.InstanceID, change.Sequence, change.Entry.TransitionEvent, change.States[0].NodeID))
		}
		if since = page.Next; len(page.Items) == 0 {
			break
		}
	}
	if want := []string{first + " 1  draft", first + " 2 submit review"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Send(first, "approve")
	page, err := c.Changes(t.Context(), ChangesRequest{Since: since, Wait: time.Second})
	if err != nil || len(page.Items) != 1 || page.Items[0].Sequence != 3 {
		t.Errorf("of all workflows: got %+v, %v, want the third entry", page, err)
	}
	if now, err := c.Changes(t.Context(), ChangesRequest{}); err != nil || len(now.Items) != 0 || now.Next == "" {
		t.Errorf("without a cursor: got %+v, %v, want none and a cursor", now, err)
	}
	if query := s.Requests()[len(s.Requests())-1].Query; len(query) != 0 {
		t.Errorf("without anything: got the parameters %v", query)
	}
	for _, refused := range []ChangesRequest{{WorkflowID: "a/b"}, {Limit: 1001}} {
		if _, err := c.Changes(t.Context(), refused); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: got %v, want ErrInvalid", refused, err)
		}
	}
	_, err = c.Changes(t.Context(), ChangesRequest{Since: "x"})
	wantStatus(t, err, 400, "InvalidContent")
}
