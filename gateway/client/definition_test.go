package client

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/servertest"
)

// TestDefinitions holds gateway/INTERFACE.md, "Published definitions".
func TestDefinitions(t *testing.T) {
	s := servertest.Start(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	id := s.Create(`{}`)
	s.Revise("draft", "sketch")
	all, err := c.Definitions(t.Context())
	assert.True(t, err == nil && len(all) == 1 && all[0].ID == "leave" && all[0].Current == 2 && len(all[0].Versions) == 2, "got %+v, %v", all, err)
	for version, want := range map[uint64]uint64{0: 2, 1: 1, 2: 2} {
		d, err := c.Definition(t.Context(), "leave", version)
		assert.True(t, err == nil && d.Version == want && d.Text != "", "version %d: got %+v, %v", version, d, err)
	}
	p, err := c.Pending(t.Context(), "leave", id)
	assert.True(t, err == nil && p.Version == 1, "an instance of version 1: got %+v, %v", p, err)
	_, err = c.Definition(t.Context(), "leave", 3)
	wantStatus(t, err, 404, "NotFound")
	_, err = c.Definition(t.Context(), "a b", 0)
	assert.Error(t, err, "an id that cannot be one is asked for")
}
