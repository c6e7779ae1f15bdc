package client

import (
	"testing"

	"troupe/gateway/servertest"
)

// TestDefinitions holds gateway/INTERFACE.md, "Published definitions".
func TestDefinitions(t *testing.T) {
	s := servertest.Start(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	id := s.Create(`{}`)
	s.Revise("draft", "sketch")
	all, err := c.Definitions(t.Context())
	if err != nil || len(all) != 1 || all[0].ID != "leave" || all[0].Current != 2 || len(all[0].Versions) != 2 {
		t.Errorf("got %+v, %v", all, err)
	}
	for version, want := range map[uint64]uint64{0: 2, 1: 1, 2: 2} {
		if d, err := c.Definition(t.Context(), "leave", version); err != nil || d.Version != want || d.Text == "" {
			t.Errorf("version %d: got %+v, %v", version, d, err)
		}
	}
	if p, err := c.Pending(t.Context(), "leave", id); err != nil || p.Version != 1 {
		t.Errorf("an instance of version 1: got %+v, %v", p, err)
	}
	_, err = c.Definition(t.Context(), "leave", 3)
	wantStatus(t, err, 404, "NotFound")
	if _, err := c.Definition(t.Context(), "a b", 0); err == nil {
		t.Error("an id that cannot be one is asked for")
	}
}
