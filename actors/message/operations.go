package message

import (
	"troupe/actors/pending"
	"troupe/statemachine"
)

// Pending is what an instance waits for.
type Pending struct {
	Timers     []Timer
	Deliveries []pending.Delivery
	Children   []Child
	// Version is that of the definition that the instance runs under.
	Version uint64
	// IsDone: all its state machines have reached a final node. IsEnded: it was stopped, or its parent has cancelled it.
	IsDone, IsEnded bool
}

// Child is an instance that another one has invoked.
type Child struct {
	WorkflowID, InstanceID string
	Status                 statemachine.ChildStatus
}

// Timer is a timer of an instance.
type Timer struct {
	ID string
	statemachine.Timer
}
