package statemachine

import (
	"encoding/binary"
	"fmt"

	"troupe/statemachine/internal/chart"
	"troupe/statemachine/packed"
)

// appendTimers writes timers, those of nodes by name, as appendMemory does.
func appendTimers(dst []byte, timers []timer) []byte {
	for i := range timers {
		t := &timers[i]
		var flags byte
		if t.failed {
			flags |= timerFailed
		}
		if t.to != "" {
			flags |= timerAimed
		}
		switch {
		case t.told != nil:
			flags |= timerTold
			if t.told.Failed {
				flags |= timerToldFailed
			}
			if n := t.told.Invoke.Node; n.Machine == n {
				flags |= timerOfMachine
			}
		case t.after == nil:
			flags |= timerSent
		case t.after.Node.Machine == t.after.Node:
			flags |= timerOfMachine
		}
		dst = append(dst, flags)
		dst = t.id.append(dst)
		dst = packed.AppendTime(dst, t.due)
		dst = packed.AppendText(dst, t.name())
		if t.after != nil {
			dst = packed.AppendText(dst, t.after.Node.Machine.ID)
			dst = packed.AppendText(dst, t.after.Node.ID)
			continue
		}
		if t.told != nil {
			dst = packed.AppendText(appendInvoke(dst, t.told.Invoke), t.data)
			continue
		}
		dst = packed.AppendText(dst, t.send)
		dst = packed.AppendText(dst, t.data)
		if t.to != "" {
			dst = packed.AppendText(dst, t.to)
		}
	}
	return dst
}

// The flags of a timer.
const (
	timerFailed byte = 1 << iota
	timerSent
	timerOfMachine // a node in it can have the same name
	timerTold      // what has become of a child
	timerToldFailed
	timerAimed // it leaves the instance
)

// errTimers: the timers do not fit the definition, or what is active.
var errTimers = fmt.Errorf("%w: timers", ErrRecord)

func (d *Definition) restoreTimers(b []byte, active chart.NodeSet) ([]timer, error) {
	var out []timer
	rd := packed.NewReader(b)
	for !rd.Whole() {
		flags := rd.Byte()
		t := timer{id: readPart(&rd), due: rd.Time(), failed: flags&timerFailed != 0}
		name := EventName(rd.Text())
		if flags&timerTold != 0 {
			t.told = &chart.ChildTransition{Invoke: d.readInvoke(&rd, flags&timerOfMachine != 0), Failed: flags&timerToldFailed != 0}
			if t.told.Invoke == nil {
				return nil, errTimers
			}
			t.data = readData(&rd)
		} else if flags&timerSent != 0 {
			t.event, t.send = name, string(rd.Text())
			t.data = readData(&rd)
			if flags&timerAimed != 0 {
				t.to = string(notEmpty(&rd))
			}
		} else {
			machine, node := d.RegionByID[MachineID(rd.Text())], NodeID(rd.Text())
			if rd.Failed() || machine == nil || machine.Machine != machine {
				return nil, errTimers
			}
			if t.after = d.findAfter(machine, node, name, flags&timerOfMachine != 0); t.after == nil || !active.Has(t.after.Node.Index) {
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

// findAfter returns the after of a node whose event has this name, or of the state machine itself; nil when there
// is none.
func (d *Definition) findAfter(machine *chart.Node, name NodeID, event EventName, ofMachine bool) *chart.After {
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

// appendInvoke writes where an invoke stands: machine, node and its number there.
func appendInvoke(dst []byte, inv *chart.Invoke) []byte {
	dst = packed.AppendText(dst, inv.Node.Machine.ID)
	dst = packed.AppendText(dst, inv.Node.ID)
	return binary.AppendUvarint(dst, uint64(inv.Number)) //nolint:gosec // not negative
}

// readInvoke returns nil when the definition has no such invoke.
func (d *Definition) readInvoke(rd *packed.Reader, ofMachine bool) *chart.Invoke {
	machine, name, number := d.RegionByID[MachineID(rd.Text())], NodeID(rd.Text()), rd.Uvarint()
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
