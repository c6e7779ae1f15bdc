package load

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEach(t *testing.T) {
	var sum atomic.Int64
	add := func(_ context.Context, i int) error {
		sum.Add(int64(i))
		return nil
	}
	if err := Each(t.Context(), 3, 100, add); err != nil || sum.Load() != 4950 {
		t.Errorf("got %d, %v, want each number once", sum.Load(), err)
	}
	full := errors.New("the disk is full")
	assert.ErrorIs(t, Each(t.Context(), 3, 1<<40, func(context.Context, int) error { return full }), full)
}
