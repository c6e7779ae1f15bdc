package statemachine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

func TestWhatWasRaisedAndTakenIsNotKept(t *testing.T) {
	d := &Definition{}
	m := &macrostep{d: d}
	half := make(data.Value, maxWaitingBytes/2)
	for i := range 3 * maxWaiting {
		m.enqueue(internalEvent{name: "x", data: half})
		if i == 0 {
			continue // one always waits
		}
		m.takeInternal()
		require.NoError(t, m.failure, "event %d", i)
		require.Nil(t, m.queue[0].data, "event %d: the data of what was taken is kept", i)
	}
	assert.Equal(t, maxWaitingBytes/2, m.waiting)
}
