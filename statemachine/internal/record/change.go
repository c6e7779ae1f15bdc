package record

import (
	"slices"
)

// WithAssignee returns the instance with a task that belongs to somebody, and false when it has no such task.
func (in *Instance) WithAssignee(id ElementID, assignee string) (next Instance, ok bool) {
	next = *in
	i := slices.IndexFunc(in.State.Tasks, func(t TaskState) bool { return t.ID == id })
	if i < 0 {
		return next, false
	}
	next.State.Tasks = slices.Clone(in.State.Tasks)
	next.State.Tasks[i].Assignee = assignee
	return next, true
}

// WithFailedTimer returns the instance with a timer that does not come on its own any more, and false when it has no such timer.
func (in *Instance) WithFailedTimer(id ElementID) (next Instance, ok bool) {
	next = *in
	i := in.State.TimerAt(id)
	if i < 0 {
		return next, false
	}
	next.State.Timers = slices.Clone(in.State.Timers)
	next.State.Timers[i].Failed = true
	return next, true
}

// WithoutTimer returns the instance without a timer, and that, and false when it has no such timer.
func (in *Instance) WithoutTimer(id ElementID) (next Instance, t TimerState, ok bool) {
	next = *in
	i := in.State.TimerAt(id)
	if i < 0 {
		return next, t, false
	}
	next.State.Timers = slices.Delete(slices.Clone(in.State.Timers), i, i+1)
	return next, in.State.Timers[i], true
}

// Whom is what the machine knows of who has sent an event: the child with that name, or the parent.
type Whom struct {
	Child  string
	Parent string // its id
	last   *ElementID
}

// Hear returns the instance with a copy of what it knows of the child, or with nil of the parent, and false when nobody such can send it events.
func (in *Instance) Hear(child *ElementID) (next Instance, from Whom, ok bool) {
	next = *in
	switch {
	case child != nil:
		i := slices.IndexFunc(in.State.Children, func(c ChildState) bool { return c.ID == *child && c.Status == ChildRuns })
		if i < 0 {
			return next, from, false
		}
		next.State.Children = slices.Clone(in.State.Children)
		c := &next.State.Children[i]
		return next, Whom{Child: c.Name, last: &c.Heard}, true
	case in.State.Parent == nil:
		return next, from, false
	}
	parent := *in.State.Parent
	next.State.Parent = &parent
	return next, Whom{Parent: parent.Instance, last: &parent.Heard}, true
}

// Heard notes that the event was heard, and reports whether it is a new one.
func (w Whom) Heard(from ElementID) bool {
	if from.Compare(*w.last) <= 0 {
		return false
	}
	*w.last = from
	return true
}
