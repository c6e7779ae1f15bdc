package statemachine

import (
	"errors"
	"fmt"
)

// The bounds of one event (statemachine/DEFINITION.md, "Bounds of one event").
const (
	maxMicrosteps = 1000
	maxActions    = 10_000 // that run, loops included

	// More raised events could not all be taken, and raising one copies its data.
	maxWaiting      = maxMicrosteps
	maxWaitingBytes = 4 << 20

	// maxCost bounds all expressions of one event together, with copies and looks at the chart: ten times the cost of a single expression,
	// about half a second.
	maxCost = 10_000_000

	maxDeliveries    = 100
	maxDeliveryBytes = 1 << 20
	maxTimers        = 1000
	maxTimerBytes    = 1 << 20 // of their data
	maxChildren      = 100     // that run, with the jobs
	maxJobBytes      = 1 << 20 // of their data
	maxDescription   = 2000    // characters of a task's description; a longer one is cut
	faultsRead       = 4       // faults of a macrostep have the values that their expressions name: those that are handled need none
	looksPerNode     = 16      // leaving or entering a node beside its transitions
)

func tooMuch(format string, bound int) error {
	return executionError{reason: fmt.Sprintf(format, bound)}
}

var (
	errTooManyMicrosteps = tooMuch("more than %d microsteps", maxMicrosteps)
	errTooManyActions    = tooMuch("more than %d actions", maxActions)
	errTooManyWait       = tooMuch("more than %d raised events wait", maxWaiting)
	errTooMuchWaits      = tooMuch("raised events with more than %d MiB of data wait", maxWaitingBytes>>20)
	errTooCostly         = tooMuch("the event costs more than %d units", maxCost)
	errTooManyDeliveries = tooMuch("more than %d deliveries", maxDeliveries)
	errDeliveriesLarge   = tooMuch("deliveries with more than %d MiB", maxDeliveryBytes>>20)
	errTooManyTimers     = tooMuch("more than %d timers", maxTimers)
	errTimersLarge       = tooMuch("timers with more than %d MiB of data", maxTimerBytes>>20)
	errTooManyChildren   = tooMuch("more than %d children and jobs", maxChildren)
	errJobsLarge         = tooMuch("jobs with more than %d MiB of data", maxJobBytes>>20)

	errTooDeep   = fmt.Errorf("invoke: more than %d instances would stand above the child", MaxDepth)
	errChildData = errors.New("invoke: svcPublic and svcPrivate must be objects")
)
