package timer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// Incident is the row of an event that came by itself and failed. The event itself waits in its instance, as a timer
// that has failed.
type Incident struct {
	Workflow, Event, Error string
	At                     time.Time
	// Version is that of the definition, and File, Line and Expression are those of statemachine.Fault.
	Version    uint64
	File       string
	Line       int
	Expression string
}

// ErrDamaged: the row of an incident cannot be read.
var ErrDamaged = errors.New("an incident cannot be read")

const (
	// incidentFormat is the version of the stored form. NB: 2 is a row of package incident.
	incidentFormat = 1
	// textMax bounds Incident.Error and Expression, in bytes.
	textMax = 2 << 10
)

// Append appends the stored form: format(1) workflow event error, each with its length, the time in milliseconds, version and line,
// file and expression.
func (in Incident) Append(dst []byte) []byte {
	dst = packed.AppendText(append(dst, incidentFormat), in.Workflow)
	dst = packed.AppendText(dst, in.Event)
	dst = packed.AppendText(dst, data.Clip(in.Error, textMax))
	dst = packed.AppendTime(dst, in.At)
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, in.Version), uint64(in.Line)) //nolint:gosec // not negative
	dst = packed.AppendText(dst, in.File)
	return packed.AppendText(dst, data.Clip(in.Expression, textMax))
}

// ParseIncident reads the stored form.
func ParseIncident(stored []byte) (in Incident, err error) {
	r := packed.NewReader(stored)
	format := r.Byte()
	in = Incident{Workflow: string(r.Text()), Event: string(r.Text()), Error: string(r.Text()), At: r.Time()}
	in.Version, in.Line = r.Uvarint(), int(min(r.Uvarint(), math.MaxInt32)) //nolint:gosec // bounded
	in.File, in.Expression = string(r.Text()), string(r.Text())
	if format != incidentFormat || !r.Whole() {
		return Incident{}, fmt.Errorf("%w: layout", ErrDamaged)
	}
	return in, nil
}

// Origin is the event that changes timers of an instance.
type Origin struct {
	Shard    key.Shard
	Workflow string
	Instance key.ID
	At       time.Time
	Fault    error // why it failed, if it did
	// Of is the definition.
	Of *statemachine.Definition
}

// Put writes what an event changes in the timers of its instance, into the commit of that event. It returns the
// earliest deadline of those that begin; zero for none.
func Put(w *persistence.Writes, of *Origin, ended, begun []statemachine.Timer) (first time.Time) {
	for _, t := range ended {
		stays := t.Failed && slices.ContainsFunc(begun, func(next statemachine.Timer) bool { return next.Failed && next.ID == t.ID })
		if !stays {
			w.Delete(of.key(t))
		}
	}
	for _, t := range begun {
		if t.Failed && of.Fault == nil { // an incident whose node has another name now: its row stays as it was
			continue
		}
		if t.Failed {
			w.Set(of.key(t), of.incident(t).Append(nil))
			continue
		}
		w.Set(of.key(t), []byte(of.Workflow))
		if first.IsZero() || t.Due.Before(first) {
			first = t.Due
		}
	}
	return first
}

// incident is the row of a timer that has failed.
func (of *Origin) incident(t statemachine.Timer) Incident {
	in := Incident{Workflow: of.Workflow, Event: string(t.Event), Error: of.Fault.Error(), At: of.At, Version: of.Of.Version}
	if f := of.Of.FaultOf(of.Fault); f != nil {
		in.File, in.Line, in.Expression = f.File, f.Line, f.Expression
	}
	return in
}

// key is that of a timer's row: of its incident when it has failed.
func (of *Origin) key(t statemachine.Timer) []byte {
	if t.Failed {
		return key.Incident(nil, of.Shard, of.Instance, t.ID.Sequence, t.ID.Number)
	}
	pending := key.Timer{Due: t.Due.UnixMilli(), ID: of.Instance, Sequence: t.ID.Sequence, Number: t.ID.Number}
	return pending.Key(nil, of.Shard)
}
