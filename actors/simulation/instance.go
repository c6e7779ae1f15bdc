package simulation

import (
	"errors"
	"slices"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pace"
	"troupe/actors/task"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Instance is one of a world's. What its methods return is as of now, and must not be changed.
type Instance struct {
	world      *World
	id         key.ID
	name       string // the id as text
	of         *statemachine.Definition
	requester  string // who has created it
	state      statemachine.Instance
	history    []statemachine.Entry
	deliveries []*Delivery                         // to webhooks, that are not delivered
	attempts   map[statemachine.ElementID]attempts // at jobs
	faults     map[statemachine.ElementID]Incident
	loop       *Incident // it causes its own steps without end; nil: it does not
	logs       []string
	gone       bool // EndChild has ended it
	bytes      int  // of state
}

// Delivery is what an instance has sent and what has not arrived.
type Delivery struct {
	outbox.Delivery
	key key.Delivery
}

// Webhook is the name of the webhook that it is for.
func (d *Delivery) Webhook() string { return d.key.Queue }

// Incident is an event that nobody sent and that the instance could not take.
type Incident struct {
	Event statemachine.EventName
	At    time.Time
	// Fault says where it failed and why.
	Fault *statemachine.Fault
}

func nameOf(id key.ID) string { return instanceid.Text(id) }

// ID is how the interface calls the instance.
func (in *Instance) ID() string { return in.name }

// Workflow is the id of its workflow.
func (in *Instance) Workflow() string { return string(in.of.ID) }

// Definition is the version that it runs under.
func (in *Instance) Definition() *statemachine.Definition { return in.of }

// State is the instance as the state machine has it.
func (in *Instance) State() *statemachine.Instance { return &in.state }

// IsDone reports whether all its state machines are in a final node, or it was ended.
func (in *Instance) IsDone() bool { return in.gone || in.of.IsOver(&in.state) }

// AppendJSON appends the instance as the interface shows it, with the newest entries of its history, so many at most.
func (in *Instance) AppendJSON(dst []byte, entries int) []byte {
	first := max(0, len(in.history)-entries)
	reply := message.Reply{
		WorkflowID: in.Workflow(), InstanceID: in.name, Sequence: in.state.Sequence, Public: in.state.Public, Private: in.state.Private,
		States: in.of.States(&in.state), Redirect: in.state.Redirect, Key: in.state.Key(), IsEnded: in.state.IsEnded(), WithHistory: true, HistoryFrom: uint64(first) + 1,
	}
	for i := range in.history[first:] {
		if i > 0 {
			reply.History = append(reply.History, ',')
		}
		reply.History = in.history[first+i].AppendJSON(reply.History)
	}
	return reply.AppendRecord(dst)
}

// History are its history entries.
func (in *Instance) History() []statemachine.Entry { return in.history }

// Logs are the texts of log actions so far.
func (in *Instance) Logs() []string { return in.logs }

// Timers are the events that come on their own, the first one first.
func (in *Instance) Timers() (out []statemachine.Timer) {
	if in.gone {
		return nil
	}
	for _, t := range in.state.Timers() {
		if !t.Failed {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b statemachine.Timer) int { return a.Due.Compare(b.Due) })
	return out
}

// Incidents are the events that it could not take, in the order in which they came, and the last one of a loop that is slowed down.
func (in *Instance) Incidents() (out []Incident) {
	for _, t := range in.state.Timers() {
		if t.Failed {
			out = append(out, in.faults[t.ID])
		}
	}
	if in.loop != nil {
		out = append(out, *in.loop)
	}
	return out
}

// Deliveries are those to webhooks that were not delivered, in order: pending ones, and dead ones.
func (in *Instance) Deliveries() []*Delivery { return in.deliveries }

// Tasks are the open tasks, without what depends on a reader: Events and IsCandidate.
func (in *Instance) Tasks() ([]*task.Item, error) { return in.tasksFor(&statemachine.Caller{}) }

// TasksFor are the open tasks as a user sees them: with the events that the user can complete each with now.
func (in *Instance) TasksFor(user string) ([]*task.Item, error) {
	who, err := in.world.o.User(user)
	if err != nil {
		return nil, err
	}
	return in.tasksFor(catalog.CallerOf(who))
}

func (in *Instance) tasksFor(c *statemachine.Caller) (out []*task.Item, err error) {
	whole, err := in.whole()
	if err != nil {
		return nil, err
	}
	whole.Budget = statemachine.NewBudget(seenCost)
	for _, t := range in.state.Tasks() {
		out = append(out, whole.ItemOf(&t, c, in.world.now, in.requester))
	}
	return out, nil
}

// EventsFor are the events that a user may send now.
func (in *Instance) EventsFor(user string) ([]statemachine.Available, error) {
	who, err := in.world.o.User(user)
	if err != nil {
		return nil, err
	}
	rules, err := in.world.Definition(in.Workflow(), 0)
	if err != nil {
		return nil, err
	}
	c := catalog.CallerOf(who)
	if !rules.MaySend(in.view(), c, in.world.now) {
		return nil, nil
	}
	return in.view().Available(c, in.world.now), nil
}

// MayRead reports whether a user may see the instance.
func (in *Instance) MayRead(user string) (bool, error) {
	who, err := in.world.o.User(user)
	if err != nil {
		return false, err
	}
	whole, err := in.whole()
	return err == nil && whole.MayRead(catalog.CallerOf(who), in.world.now), err
}

// Children are the instances that it has invoked and that run, in the order in which they began. One that is not created is missing.
func (in *Instance) Children() (out []*Instance) {
	for _, c := range in.state.Children() {
		if of := in.childOf(&c); c.Status == statemachine.ChildRuns && of != nil {
			out = append(out, of)
		}
	}
	return out
}

func (in *Instance) view() statemachine.View {
	return statemachine.View{Instance: &in.state, Of: in.of}
}

func (in *Instance) whole() (*task.Whole, error) {
	rules, err := in.world.Definition(in.Workflow(), 0)
	return &task.Whole{Workflow: in.Workflow(), Of: in.of, Rules: rules, State: &in.state}, err
}

// adopt takes over what a step has made of the instance. What it sends leaves after a delay.
func (in *Instance) adopt(r *statemachine.Result, delay time.Duration) {
	in.state = r.Instance
	in.logs = append(in.logs, r.Logs...)
	if r.Outcome != statemachine.Ignored {
		in.history = append(in.history, r.Entry)
		in.world.events = append(in.world.events, Event{in, r.Entry})
		in.world.bytes += entryBytes + len(r.Entry.Data)
	}
	for _, text := range r.Logs {
		in.world.bytes += len(text)
	}
	in.weigh()
	for i := range r.Deliveries {
		in.send(&r.Deliveries[i], uint32(i), delay) //nolint:gosec // few
	}
}

// take takes over what an event that nobody sent has come to. One that has failed becomes an incident: failed returns the instance with it.
func (in *Instance) take(result statemachine.Result, err error, failed func() (statemachine.Instance, error)) {
	now := in.world.now
	switch {
	case err == nil:
		delay := in.world.steps.Step(in.id, result.Cost, now)
		in.loop = nil
		if delay > 0 && (result.Instance.Postpone(&in.state, now.Add(delay)) || len(result.Deliveries) > 0) {
			in.loop = &Incident{result.Entry.Event, now, &statemachine.Fault{Message: pace.Endless}}
		}
		in.adopt(&result, delay)
	case errors.Is(err, statemachine.ErrEnded), errors.Is(err, statemachine.ErrNoChild), errors.Is(err, statemachine.ErrNoTimer): // nobody waits for it any more
	default:
		next, restored := failed()
		if restored != nil {
			panic(restored) // the timer or child was there
		}
		in.note(&next, err)
	}
}

// note takes over an instance with new incidents.
func (in *Instance) note(next *statemachine.Instance, err error) {
	_, begun := next.TimerChanges(&in.state)
	for _, t := range begun {
		if t.Failed {
			if in.faults == nil {
				in.faults = map[statemachine.ElementID]Incident{}
			}
			fault := in.of.FaultOf(err)
			if fault == nil {
				fault = &statemachine.Fault{Message: err.Error()}
			}
			in.faults[t.ID] = Incident{t.Event, in.world.now, fault}
		}
	}
	in.state = *next
	in.weigh()
}

// seenCost bounds what it costs to see all tasks of an instance, in the units of an event. Beyond it texts fall back.
const seenCost = 10_000_000

// entryBytes is what an entry takes beside its data.
const entryBytes = 256

// weigh counts what the instance takes now, in place of what it took.
func (in *Instance) weigh() {
	before := in.bytes
	in.world.room = in.of.AppendRecord(in.world.room[:0], &in.state, statemachine.Chain{}, nil)
	in.bytes = len(in.world.room)
	in.world.bytes += in.bytes - before
}

// fire raises the event of a timer that is due.
func (in *Instance) fire(id statemachine.ElementID) {
	result, err := in.of.Fire(&in.state, id, in.world.now)
	in.take(result, err, func() (statemachine.Instance, error) { return in.of.Fail(&in.state, id) })
}

// receive gives the instance an event of the service.
func (in *Instance) receive(event statemachine.EventName, given data.Value) {
	now := in.world.now
	result, err := in.of.Receive(&in.state, event, given, now)
	in.take(result, err, func() (statemachine.Instance, error) { return in.of.FailEvent(&in.state, event, given, now), nil })
}
