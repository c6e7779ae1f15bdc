package servertest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/outbox"
	"troupe/actors/pending"
)

// TestWhatWaitsIsCounted: cmd/troupe/HOME.md, "Metrics". The counts are those of the rows when they are asked for, and go when the rows do.
func TestWhatWaitsIsCounted(t *testing.T) {
	s, _ := StartNotice(t)
	w := s.workflows
	c := w.Waiting.NewCounter()
	counts, err := c.Counts()
	require.NoError(t, err)
	none := map[string]int64{"webhook": 0, "mail": 0, "invoke": 0}
	assert.Equal(t, &pending.Counts{IncidentsOpen: 1, Pending: none, Dead: map[string]int64{"webhook": 1, "mail": 0, "invoke": 0}}, counts)

	dead, err := w.Waiting.Deliveries(t.Context(), &pending.DeliveryList{Limit: 1})
	require.NoError(t, err)
	require.NoError(t, w.ChangeDelivery(t.Context(), dead.Deliveries[0].ID, outbox.Drop))
	counts, err = c.Counts()
	require.NoError(t, err)
	assert.Equal(t, none, counts.Dead, "behind a drop")
}
