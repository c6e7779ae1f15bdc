package incident

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"troupe/actors/failure"
	"troupe/persistence/key"
	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Kind says what failed.
type Kind string

const (
	Event      Kind = ""           // Event came by itself and failed, once; its instance keeps it (package timer)
	Expression Kind = "expression" // a step that failed for whoever sent its event, or asked for its instance
	// Loop is an instance that sends itself events without end, and Tree the root of a tree of instances over its
	// limit.
	Loop Kind = "loop"
	Tree Kind = "tree"
)

// Row is an incident that no timer keeps: all failures of one kind at one place of one version of a workflow.
type Row struct {
	Kind     Kind   `json:"kind"`
	Workflow string `json:"workflow"`
	Version  uint64 `json:"version"`
	// Place tells it from others of its kind in the version; "": that of the definition's text, and without one the
	// event.
	Place string `json:"place,omitempty"`
	// Instance is the last that failed; "": it was never created. Event is what it failed with; "": its create.
	Instance string `json:"instance,omitempty"`
	Event    string `json:"event,omitempty"`
	Error    string `json:"error"`
	// File, Line, Expression and Read are those of statemachine.Fault, of the last failure.
	File       string      `json:"file,omitempty"`
	Line       int         `json:"line,omitempty"`
	Expression string      `json:"expression,omitempty"`
	Read       []expr.Read `json:"read,omitempty"`
	User       string      `json:"user,omitempty"` // who was last told of it
	First      time.Time   `json:"first"`
	Last       time.Time   `json:"last"`
	Count      uint64      `json:"count"`
}

const (
	// rowFormat is the version of the stored form: format(1) and JSON. NB: 1 is an incident of package timer.
	rowFormat = 2
	textMax   = 2 << 10 // textMax bounds Error and Expression, in bytes
	// mark begins the names of rows in keys: it is behind the ids of all instances that are created before the year
	// 10000.
	mark = 0xFF
)

// ErrDamaged: the row of an incident cannot be read.
var ErrDamaged = errors.New("an incident cannot be read")

// IsRow reports whether a stored incident is a Row.
func IsRow(stored []byte) bool { return len(stored) > 0 && stored[0] == rowFormat }

// Parse reads a stored Row.
func Parse(stored []byte) (*Row, error) {
	r := &Row{}
	if !IsRow(stored) {
		return nil, fmt.Errorf("%w: format", ErrDamaged)
	}
	if err := json.Unmarshal(stored[1:], r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return r, nil
}

func (r *Row) stored() ([]byte, error) {
	text, err := json.Marshal(r)
	return append([]byte{rowFormat}, text...), err
}

func (r *Row) bound() {
	r.Error, r.Expression = data.Clip(r.Error, textMax), data.Clip(r.Expression, textMax)
}

// It is an id only in keys and in what people read: it chooses the shard that has the row.
func (r *Row) name() (id key.ID) {
	place := r.Place
	if place == "" {
		if place = r.File; r.Line == 0 {
			place = r.Event
		}
	}
	h := sha256.New()
	for _, part := range []string{string(r.Kind), r.Workflow, place, r.Expression} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	h.Write(binary.AppendUvarint(binary.AppendUvarint(nil, r.Version), uint64(r.Line))) //nolint:gosec // not negative
	copy(id[:], h.Sum(nil))
	id[0] = mark
	return id
}

func (r *Row) merge(later *Row) {
	first, count := r.First, r.Count+later.Count
	if later.First.Before(first) {
		first = later.First
	}
	if !later.Last.Before(r.Last) {
		*r = *later
	}
	r.First, r.Count = first, count
}

func (k Kind) retry() error {
	instead := "whoever sent the event was told that it failed, and can send it again"
	switch k {
	case Loop:
		instead = "send the instance an event that leads it out, or publish a version without the circle and migrate it"
	case Tree:
		instead = "the instances that invoked more got error.invoke; end instances of the tree, or have treeInstancesMax raised, before they invoke again"
	}
	return failure.Refuse(failure.ErrConflict, "there is nothing to retry: %s", instead)
}
