package signal

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/fault"
)

func TestWhatWasRaisedAndTakenIsNotKept(t *testing.T) {
	var q Queue
	half := make(data.Value, fault.MaxWaitingBytes/2)
	for i := range 3 * fault.MaxWaiting {
		require.NoError(t, q.Put(Raised{Name: "x", Data: half}), "event %d", i)
		if i == 0 {
			continue // one always waits
		}
		q.Take()
		require.Nil(t, q.events[0].Data, "event %d: the data of what was taken is kept", i)
	}
	assert.Equal(t, fault.MaxWaitingBytes/2, q.bytes)
	require.NoError(t, q.Put(Raised{Data: half}))
	assert.ErrorIs(t, q.Put(Raised{Data: half}), fault.ErrTooMuchWaits)
}
