package fault

import (
	"errors"
	"fmt"

	"troupe/statemachine/internal/record"
)

// The bounds of one event (statemachine/DEFINITION.md, "Bounds of one event").
const (
	MaxMicrosteps = 1000
	MaxActions    = 10_000 // that run, loops included

	// More raised events could not all be taken, and raising one copies its data.
	MaxWaiting      = MaxMicrosteps
	MaxWaitingBytes = 4 << 20

	// MaxCost bounds all expressions of one event together, with copies and looks at the chart: ten times the cost of a single expression,
	// about half a second.
	MaxCost = 10_000_000

	MaxDeliveries    = 100
	MaxDeliveryBytes = 1 << 20
	MaxTimers        = 1000
	MaxTimerBytes    = 1 << 20 // of their data
	MaxChildren      = 100     // that run, with the jobs
	MaxJobBytes      = 1 << 20 // of their data
	MaxDescription   = 2000    // characters of a task's description; a longer one is cut
	FaultsRead       = 4       // faults of a macrostep have the values that their expressions name: those that are handled need none
	LooksPerNode     = 16      // leaving or entering a node beside its transitions
)

func tooMuch(format string, most int) error {
	return Execution{Reason: fmt.Sprintf(format, most)}
}

// Passing a bound fails the event; the last two are errors of an action.
var (
	ErrTooManyMicrosteps = tooMuch("more than %d microsteps", MaxMicrosteps)
	ErrTooManyActions    = tooMuch("more than %d actions", MaxActions)
	ErrTooManyWait       = tooMuch("more than %d raised events wait", MaxWaiting)
	ErrTooMuchWaits      = tooMuch("raised events with more than %d MiB of data wait", MaxWaitingBytes>>20)
	ErrTooCostly         = tooMuch("the event costs more than %d units", MaxCost)
	ErrTooManyDeliveries = tooMuch("more than %d deliveries", MaxDeliveries)
	ErrDeliveriesLarge   = tooMuch("deliveries with more than %d MiB", MaxDeliveryBytes>>20)
	ErrTooManyTimers     = tooMuch("more than %d timers", MaxTimers)
	ErrTimersLarge       = tooMuch("timers with more than %d MiB of data", MaxTimerBytes>>20)
	ErrTooManyChildren   = tooMuch("more than %d children and jobs", MaxChildren)
	ErrJobsLarge         = tooMuch("jobs with more than %d MiB of data", MaxJobBytes>>20)

	ErrTooDeep   = fmt.Errorf("invoke: more than %d instances would stand above the child", record.MaxDepth)
	ErrChildData = errors.New("invoke: svcPublic and svcPrivate must be objects")
)
