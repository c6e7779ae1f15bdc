package statemachine

import (
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// MaxDataBytes bounds svcPublic and svcPrivate together
// (statemachine/DEFINITION.md, "Size of an instance"). The rest of the record is
// small compared to it.
const MaxDataBytes = 1 << 20

// Instance is a workflow instance as a value: where it is and what it holds.
// Step returns a new one and leaves the old as it was; the two may share bytes,
// which nobody writes to.
type Instance struct {
	ID        string // ULID
	CreatedAt time.Time
	// Sequence is the number of history entries, and UpdatedAt the time of the
	// last one.
	Sequence  uint64
	UpdatedAt time.Time
	// Public and Private are svcPublic and svcPrivate: always objects.
	Public, Private data.Value
	// Redirect is svcRedirect; "" when it is not set.
	Redirect string

	at *chart.Configuration // set by Create, Step and Restore
	// memory is what history nodes remember, in no order. It is replaced and never
	// changed in place.
	memory []memory
	// timers wait, in the order in which they began. It is replaced and never changed in place.
	timers []timer
	// children run, or have ended not long ago, in the order in which they began. It is replaced and never changed in place.
	children []child
	// tasks are open, in the order in which they began. It is replaced and never changed in place.
	tasks  []task
	parent *Parent // nil: nobody has invoked it
	ended  bool    // the parent has cancelled it
}

// memory is what one history node recorded when its parent was last left.
type memory struct {
	history int
	nodes   []int
}

// hasParts reports whether there is something to end when the instance is done.
func (in *Instance) hasParts() bool {
	return len(in.timers) > 0 || len(in.children) > 0 || in.parent != nil
}

// Positions returns the instance's states in the order of the definition's
// machines (statemachine/DEFINITION.md, "Positions"). A nested parallel node stands
// for its machine and is followed by one position for each of its regions. The result
// is shared and must not be changed.
func (d *Definition) Positions(in *Instance) []Position { return in.at.Positions }

// States returns the JSON array of the instance's positions, which is shared and must
// not be changed.
func (d *Definition) States(in *Instance) data.Value { return in.at.States }

// IsDone reports whether every state machine is in a final node.
func (d *Definition) IsDone(in *Instance) bool { return in.at.Done }

// IsOver reports whether the instance has come to its end, or its parent has cancelled it.
func (d *Definition) IsOver(in *Instance) bool { return in.ended || in.at.Done }

// IsInitial reports whether the instance is in the nodes that its creation entered before anything else moved it: every state machine, and
// every region in it, is in its initial node.
func (d *Definition) IsInitial(in *Instance) bool { return in.at.Initial }
