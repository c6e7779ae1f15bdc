package bulk

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
)

// TestWhoHasGoneDoesNotWait for the one who changes a job.
func TestWhoHasGoneDoesNotWait(t *testing.T) {
	s := New(Options{})
	require.NoError(t, s.begin(t.Context()))
	gone, leave := context.WithCancel(t.Context())
	leave()
	require.ErrorIs(t, s.begin(gone), failure.ErrBusy)
	s.end()
	assert.NoError(t, s.begin(t.Context()))
}
