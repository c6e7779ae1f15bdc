package record

import (
	"fmt"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/packed"
)

// What does not fit the definition, or what is active.
var (
	errHistory  = fmt.Errorf("%w: history", ErrRecord)
	errTimers   = fmt.Errorf("%w: timers", ErrRecord)
	errChildren = fmt.Errorf("%w: children", ErrRecord)
	errTasks    = fmt.Errorf("%w: tasks", ErrRecord)
	errJobs     = fmt.Errorf("%w: jobs", ErrRecord)
)

// Restore makes the instance that r was written from, under the definition that it was written with. It returns ErrRecord when they do
// not fit.
func Restore(d *chart.Definition, id string, r Record) (Instance, error) {
	in := Instance{
		ID: id, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Sequence: r.Sequence,
		Redirect: r.Redirect, Named: NamedBy(r.Key),
	}
	active := chart.NewNodeSet(len(d.Nodes))
	if r.Version != d.Version {
		return in, fmt.Errorf("%w: version %d read with definition %d", ErrRecord, r.Version, d.Version)
	}
	states, err := data.Clean(r.States)
	if err == nil {
		in.Public, err = data.Clean(r.Public)
	}
	if err == nil {
		in.Private, err = data.Clean(r.Private)
	}
	if err != nil || in.Public.Kind() != data.Object || in.Private.Kind() != data.Object {
		return in, fmt.Errorf("%w: data", ErrRecord)
	}
	for _, s := range states.Elements() {
		machine, _ := s.Lookup("stateMachineId")
		name, _ := s.Lookup("nodeId")
		if !d.Activate(active, chart.MachineID(machine.Text()), chart.NodeID(name.Text())) {
			return in, fmt.Errorf("%w: node %q is not in definition %s version %d", ErrRecord, data.Shorten(name.Text()), d.ID, d.Version)
		}
	}
	if !d.IsWhole(active) {
		return in, fmt.Errorf("%w: states do not make a configuration of %s version %d", ErrRecord, d.ID, d.Version)
	}
	in.State.At = d.ConfigurationOf(active)
	if in.State.Memory, err = restoreMemory(d, r.memory); err != nil {
		return in, err
	}
	if in.State.Timers, err = restoreTimers(d, r.timers, active); err != nil {
		return in, err
	}
	if in.State.Children, err = restoreChildren(d, r.children); err != nil {
		return in, err
	}
	if in.State.Jobs, err = restoreJobs(d, r.jobs); err != nil {
		return in, err
	}
	if err := restoreParent(&in, r.parent); err != nil {
		return in, err
	}
	return in, restoreTasks(d, &in, r.tasks)
}

func restoreMemory(d *chart.Definition, b []byte) ([]Memory, error) {
	var out []Memory
	rd := packed.NewReader(b)
	for !rd.Whole() {
		machine := d.RegionByID[chart.MachineID(rd.Text())]
		history := chart.NodeID(rd.Text())
		count := rd.Uvarint()
		if rd.Failed() || machine == nil || machine.Machine != machine || count > uint64(len(d.Nodes)) {
			return nil, errHistory
		}
		h := d.Find(machine, history)
		if h == nil {
			return nil, errHistory
		}
		m := Memory{History: h.Index}
		for range count {
			n := d.Find(machine, chart.NodeID(rd.Text()))
			if rd.Failed() || n == nil || !h.Kind.IsHistory() || !h.Parent.Contains(n) || n.Kind.IsHistory() {
				return nil, errHistory
			}
			m.Nodes = append(m.Nodes, n.Index)
		}
		out = append(out, m)
	}
	return out, nil
}

func restoreTimers(d *chart.Definition, b []byte, active chart.NodeSet) ([]TimerState, error) {
	var out []TimerState
	rd := packed.NewReader(b)
	for !rd.Whole() {
		flags := rd.Byte()
		t := TimerState{ID: readElement(&rd), Due: rd.Time(), Failed: flags&timerFailed != 0}
		name := chart.EventName(rd.Text())
		if flags&timerChild != 0 {
			t.Child = &chart.ChildTransition{Invoke: readInvoke(d, &rd, flags&timerOfMachine != 0), Failed: flags&timerChildFailed != 0}
			if t.Child.Invoke == nil {
				return nil, errTimers
			}
			t.Data = readData(&rd)
		} else if flags&timerSent != 0 {
			t.Event, t.Send = name, string(rd.Text())
			t.Data = readData(&rd)
			if flags&timerAimed != 0 {
				t.To = string(notEmpty(&rd))
			}
		} else {
			machine, node := d.RegionByID[chart.MachineID(rd.Text())], chart.NodeID(rd.Text())
			if rd.Failed() || machine == nil || machine.Machine != machine {
				return nil, errTimers
			}
			if t.After = findAfter(d, machine, node, name, flags&timerOfMachine != 0); t.After == nil || !active.Has(t.After.Node.Index) {
				return nil, errTimers
			}
		}
		if rd.Failed() {
			return nil, errTimers
		}
		out = append(out, t)
	}
	return out, nil
}

func readData(rd *packed.Reader) data.Value {
	text := rd.Text()
	if len(text) == 0 {
		return nil
	}
	v, err := data.Clean(text)
	if err != nil {
		rd.Fail()
	}
	return v
}

// findAfter returns the after of a node whose event has this name, or of the state machine itself; nil when there is none.
func findAfter(d *chart.Definition, machine *chart.Node, name chart.NodeID, event chart.EventName, ofMachine bool) *chart.After {
	n := machine
	if !ofMachine {
		n = d.Find(machine, name)
	}
	if n == nil {
		return nil
	}
	for _, a := range n.After {
		if a.Event == event {
			return a
		}
	}
	return nil
}

func restoreChildren(d *chart.Definition, b []byte) ([]ChildState, error) {
	var out []ChildState
	rd := packed.NewReader(b)
	for !rd.Whole() {
		flags := rd.Byte()
		c := ChildState{
			ID: readElement(&rd), Begun: rd.Time(),
			Status: ChildStatus(flags &^ (childOfMachine | childNamed | childHeard)),
		}
		c.Invoke = readInvoke(d, &rd, flags&childOfMachine != 0)
		if flags&childNamed != 0 {
			c.Name, c.Workflow = string(notEmpty(&rd)), string(rd.Text())
		}
		if flags&childHeard != 0 {
			c.Heard = readElement(&rd)
		}
		if rd.Failed() || c.Invoke == nil || c.Status < ChildRuns || c.Status > ChildCancelled {
			return nil, errChildren
		}
		out = append(out, c)
	}
	return out, nil
}

// readInvoke returns nil when the definition has no such invoke.
func readInvoke(d *chart.Definition, rd *packed.Reader, ofMachine bool) *chart.Invoke {
	machine, name, number := d.RegionByID[chart.MachineID(rd.Text())], chart.NodeID(rd.Text()), rd.Uvarint()
	if rd.Failed() || machine == nil || machine.Machine != machine {
		return nil
	}
	n := machine
	if !ofMachine {
		n = d.Find(machine, name)
	}
	if n == nil || number >= uint64(len(n.Invoke)) {
		return nil
	}
	return n.Invoke[number]
}

// Parent is who has invoked the instance; nil for nobody. What came from it is left out.
func (r *Record) Parent() *Parent {
	var in Instance
	if err := restoreParent(&in, r.parent); err != nil || in.State.Parent == nil {
		return nil
	}
	in.State.Parent.Heard = ElementID{}
	return in.State.Parent
}

func restoreParent(in *Instance, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	rd := packed.NewReader(b)
	flags := rd.Byte()
	in.State.Ended = flags&parentEnded != 0
	in.State.Aside = flags&parentAside != 0
	if flags&parentThere != 0 {
		p := Parent{Workflow: string(rd.Text()), Instance: string(rd.Text())}
		p.Child = readElement(&rd)
		depth := rd.Uvarint()
		if depth > MaxDepth {
			rd.Fail()
		}
		p.Depth = int(depth) //nolint:gosec // bounded above
		if flags&parentHeard != 0 {
			p.Heard = readElement(&rd)
		}
		in.State.Parent = &p
	}
	if !rd.Whole() || flags > parentThere|parentEnded|parentHeard|parentAside || flags&^parentHeard == 0 {
		return fmt.Errorf("%w: parent", ErrRecord)
	}
	return nil
}

func restoreTasks(d *chart.Definition, in *Instance, b []byte) error {
	rd := packed.NewReader(b)
	for !rd.Whole() {
		t := TaskState{ID: readElement(&rd)}
		machine, name := d.RegionByID[chart.MachineID(rd.Text())], chart.NodeID(rd.Text())
		t.Created = rd.Time()
		if due := rd.Varint(); due != 0 {
			t.Due = time.UnixMilli(due).UTC()
		}
		t.Assignee = string(rd.Text())
		if rd.Failed() || machine == nil || machine.Machine != machine {
			return errTasks
		}
		if t.Node = d.Find(machine, name); t.Node == nil || t.Node.Task == nil || !in.State.At.Active.Has(t.Node.Index) {
			return errTasks
		}
		in.State.Tasks = append(in.State.Tasks, t)
	}
	return nil
}
