// Package conceal hides in time why an answer came when it did: what was looked at
// and not shown, or that nothing was.
package conceal

import (
	"context"
	"time"
)

// Until waits until the time since begun is a whole number of steps, and more
// behind that, or until ctx ends.
func Until(ctx context.Context, begun time.Time, step, more time.Duration) {
	late := time.NewTimer(step - time.Since(begun)%step + more)
	defer late.Stop()
	select {
	case <-late.C:
	case <-ctx.Done():
	}
}
