package simulation

import (
	"bytes"
	"cmp"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/pace"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// The bounds of a world.
const (
	eventsMax    = 10_000 // that come on their own in one step of the world
	instancesMax = 10_000 // that run, as in a tree of the service
)

// Options configures a World.
type Options struct {
	// Definitions returns a version of a workflow; 0 is the newest, whose rules hold for all instances. failure.ErrNotFound: there is none.
	// Required.
	Definitions func(workflow string, version uint64) (*statemachine.Definition, error)
	// User returns a user with the rights of now, or why there is none. Required.
	User func(name string) (*identity.Principal, error)
	// Now is when the world begins, to the millisecond.
	Now time.Time
	// Covers has the world note what its instances reach: Coverage.
	Covers bool
	// May is asked before each thing that comes on its own, with the bytes that the world has come to. An error of its ends the step of
	// the world that brings it, which stands where it is then. Nil: it may be any number.
	May func(bytes int) error
}

// World is where instances are simulated.
type World struct {
	o           Options
	now         time.Time
	definitions map[version]*statemachine.Definition
	coverage    []*statemachine.Coverage

	instances []*Instance // in the order in which they were created
	drawn     uint64      // ids
	steps     pace.Steps  // that instances cause themselves
	waiting   []*Delivery // messages between instances, in the order in which they were sent
	events    []Event
	sent      []Sent
	bytes     int    // of all of this, about
	room      []byte // to weigh an instance in
}

type version struct {
	workflow string
	number   uint64
}

// New returns a world without instances.
func New(o Options) *World {
	return &World{o: o, now: o.Now.UTC().Truncate(time.Millisecond), definitions: map[version]*statemachine.Definition{}}
}

// Now is the time in the world.
func (w *World) Now() time.Time { return w.now }

// Definition returns a version of a workflow, 0 for the newest, as it is in the world: one that notes what is reached.
func (w *World) Definition(workflow string, number uint64) (*statemachine.Definition, error) {
	if d := w.definitions[version{workflow, number}]; d != nil {
		return d, nil
	}
	d, err := w.o.Definitions(workflow, number)
	if err != nil {
		return nil, err
	}
	at := version{workflow, d.Version}
	if w.definitions[at] == nil {
		if w.o.Covers {
			c := statemachine.NewCoverage(d)
			w.coverage = append(w.coverage, c)
			d = d.Covered(c)
		}
		w.definitions[at] = d
	}
	w.definitions[version{workflow, number}] = w.definitions[at]
	return w.definitions[at], nil
}

// Coverage is what instances have reached so far, one for each version that is in use. It is empty without Options.Covers.
func (w *World) Coverage() []*statemachine.Coverage { return w.coverage }

// Instances are all that there are, in the order in which they were created. The result must not be changed.
func (w *World) Instances() []*Instance { return w.instances }

// Find returns the instance with an id; nil when there is none.
func (w *World) Find(id string) *Instance {
	for _, in := range w.instances {
		if in.state.ID == id {
			return in
		}
	}
	return nil
}

// Event is a history entry of an instance.
type Event struct {
	Instance *Instance
	statemachine.Entry
}

// Events are the history entries of all instances, in the order in which they came. Those since a moment are behind the number that there
// were. The result must not be changed.
func (w *World) Events() []Event { return w.events }

// Sent is something that has left an instance for the outside.
type Sent struct {
	Instance *Instance
	At       time.Time
	statemachine.Delivery
}

// Sent is all that has left, in order, as with Events.
func (w *World) Sent() []Sent { return w.sent }

// Advance lets time pass. What is due comes in order: timers, the next attempts to reach other instances, and what was delayed because an
// instance causes its own steps without end. It is failure.ErrExecution when too much comes; the clock stands there then.
func (w *World) Advance(by time.Duration) error {
	until := w.now.Add(max(by, 0)).Truncate(time.Millisecond)
	for range eventsMax {
		at, do := w.next()
		if do == nil || at.After(until) {
			w.now = until
			return nil
		}
		if err := w.may(); err != nil {
			return err
		}
		if at.After(w.now) {
			w.now = at
		}
		do()
	}
	return w.tooMuch()
}

// settle has all happen that is due now, besides timers: they need time to pass.
func (w *World) settle() error {
	for range eventsMax {
		d := w.nextMessage()
		if d == nil || d.Next.After(w.now) {
			return nil
		}
		if err := w.may(); err != nil {
			return err
		}
		w.carry(d)
	}
	return w.tooMuch()
}

// Bytes are about those that the world keeps: of its instances, their histories, and what they have sent.
func (w *World) Bytes() int { return w.bytes }

func (w *World) may() error {
	if w.o.May == nil {
		return nil
	}
	return w.o.May(w.bytes)
}

func (w *World) tooMuch() error {
	return failure.Refuse(failure.ErrExecution, "more than %d events come on their own up to %s", eventsMax, w.now.Format(statemachine.TimeLayout))
}

// next is what comes next on its own, and when; nil: nothing does.
func (w *World) next() (at time.Time, do func()) {
	if d := w.nextMessage(); d != nil {
		at, do = d.Next, func() { w.carry(d) }
	}
	var first *Instance
	var due statemachine.Timer
	for _, in := range w.instances {
		for _, t := range in.Timers() {
			if first == nil || cmp.Or(t.Due.Compare(due.Due), bytes.Compare(in.id[:], first.id[:]), t.ID.Compare(due.ID)) < 0 {
				first, due = in, t
			}
		}
	}
	if first != nil && (do == nil || due.Due.Before(at)) {
		at, do = due.Due, func() { first.fire(due.ID) }
	}
	return at, do
}

// nextMessage is the message between instances that arrives next; nil: none is under way. Those of one instance and queue arrive one after
// the other.
func (w *World) nextMessage() (next *Delivery) {
	type stream struct {
		id    key.ID
		queue string
	}
	seen := map[stream]bool{}
	for _, d := range w.waiting {
		of := stream{d.key.ID, d.key.Queue}
		if !seen[of] && (next == nil || d.Next.Before(next.Next)) {
			next = d
		}
		seen[of] = true
	}
	return next
}

// draw is the id of an instance that is created now.
func (w *World) draw() key.ID {
	w.drawn++
	return instanceid.Numbered(w.now, w.drawn)
}

func (w *World) at(id key.ID) *Instance {
	for _, in := range w.instances {
		if in.id == id {
			return in
		}
	}
	return nil
}
