package record

import (
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// MaxDataBytes bounds svcPublic and svcPrivate together (statemachine/DEFINITION.md, "Size of an instance"). The rest of the record is
// small compared to it.
const MaxDataBytes = 1 << 20

// Instance is a workflow instance as a value: where it is and what it holds. Step returns a new one and leaves the old as it was; the two
// may share bytes, which nobody writes to.
type Instance struct {
	ID        string // ULID
	Named     *Named // nil for one without a key
	CreatedAt time.Time
	// Sequence is the number of history entries, and UpdatedAt the time of the last one.
	Sequence  uint64
	UpdatedAt time.Time
	// Public and Private are svcPublic and svcPrivate: always objects.
	Public, Private data.Value
	// Redirect is svcRedirect; "" when it is not set.
	Redirect string
	// State is the interpreter's.
	State State
}

// Named is what an instance with a key has more than others. It stands apart because most have none, and many are in memory.
type Named struct {
	Key string // what callers know the instance by. It never changes
}

// NamedBy is Instance.Named for a key; "" for none.
func NamedBy(key string) *Named {
	if key == "" {
		return nil
	}
	return &Named{key}
}

// Key is what callers know the instance by; "" for none.
func (in *Instance) Key() string {
	if in.Named == nil {
		return ""
	}
	return in.Named.Key
}

// State is where an instance is and what it waits for. Its slices are replaced and never changed in place; timers, children, tasks
// and jobs stand in the order in which they began.
type State struct {
	At       *chart.Configuration // set by Create, Step and Restore
	Memory   []Memory             // what history nodes remember, in no order
	Timers   []TimerState
	Children []ChildState // run, or have ended not long ago
	Tasks    []TaskState  // open
	Jobs     []JobState   // not done
	Parent   *Parent      // nil: nobody has invoked it
	Ended    bool         // it was stopped, or its parent has cancelled it
	Aside    bool         // what it waits for has changed since its newest entry, without one
}

// Memory is what one history node recorded when its parent was last left.
type Memory struct {
	History int
	Nodes   []int
}

// IsOver reports whether the instance has come to its end, or its parent has cancelled it.
func (s *State) IsOver() bool { return s.Ended || s.At.Done }

// Remembered returns the nodes that a history node recorded, or nil.
func (s *State) Remembered(history *chart.Node) []int {
	for i := range s.Memory {
		if s.Memory[i].History == history.Index {
			return s.Memory[i].Nodes
		}
	}
	return nil
}

// Ends are the names that the newest entry of the instance ends with. They are shared, so not to be changed.
func (in *Instance) Ends() []chart.NodeID {
	if in.State.At == nil {
		return nil
	}
	return in.State.At.End
}

// NextTime is the time of the instance's next entry: it never goes back (statemachine/DEFINITION.md, "Time").
func (in *Instance) NextTime(now time.Time) time.Time {
	now = now.UTC().Truncate(time.Millisecond)
	if now.Before(in.UpdatedAt) {
		return in.UpdatedAt
	}
	return now
}

// changes are what is only in one of two lists.
func changes[T comparable](old, now []T) (ended, begun []T) {
	for _, t := range old {
		if !slices.Contains(now, t) {
			ended = append(ended, t)
		}
	}
	for _, t := range now {
		if !slices.Contains(old, t) {
			begun = append(begun, t)
		}
	}
	return ended, begun
}

func isSame[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
