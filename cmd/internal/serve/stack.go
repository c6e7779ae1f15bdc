package serve

import (
	"context"
	"errors"
	"io"
	"slices"
)

// part is something that works until it is stopped.
type part interface {
	// Stop takes nothing new, ends what was begun, and returns when no goroutine of the part is left. It can be called
	// again, and before Start; a Start that comes later starts nothing.
	Stop(ctx context.Context) error
}

type closing struct{ io.Closer }

func (c closing) Stop(context.Context) error { return c.Close() }

type stack struct{ parts []part }

// A part that is there already moves up.
func (s *stack) push(p part) {
	s.parts = append(slices.DeleteFunc(s.parts, func(q part) bool { return q == p }), p)
}

func (s *stack) stop(ctx context.Context) error {
	var faults []error
	for _, p := range slices.Backward(s.parts) {
		faults = append(faults, p.Stop(ctx))
	}
	s.parts = nil
	return errors.Join(faults...)
}
