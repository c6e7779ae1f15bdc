package statemachine

import (
	"encoding/binary"
	"fmt"

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
			if t.told.failed {
				flags |= timerToldFailed
			}
			if n := t.told.invoke.node; n.machine == n {
				flags |= timerOfMachine
			}
		case t.after == nil:
			flags |= timerSent
		case t.after.node.machine == t.after.node:
			flags |= timerOfMachine
		}
		dst = append(dst, flags)
		dst = t.id.append(dst)
		dst = packed.AppendTime(dst, t.due)
		dst = packed.AppendText(dst, t.name())
		if t.after != nil {
			dst = packed.AppendText(dst, t.after.node.machine.id)
			dst = packed.AppendText(dst, t.after.node.id)
			continue
		}
		if t.told != nil {
			dst = packed.AppendText(t.told.invoke.append(dst), t.data)
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

func (d *Definition) restoreTimers(b []byte, active nodeSet) ([]timer, error) {
	var out []timer
	rd := packed.NewReader(b)
	for !rd.Whole() {
		flags := rd.Byte()
		t := timer{id: readPart(&rd), due: rd.Time(), failed: flags&timerFailed != 0}
		name := EventName(rd.Text())
		if flags&timerTold != 0 {
			t.told = &telling{d.readInvoke(&rd, flags&timerOfMachine != 0), flags&timerToldFailed != 0}
			if t.told.invoke == nil {
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
			machine, node := d.regions[MachineID(rd.Text())], NodeID(rd.Text())
			if rd.Failed() || machine == nil || machine.machine != machine {
				return nil, errTimers
			}
			if t.after = d.findAfter(machine, node, name, flags&timerOfMachine != 0); t.after == nil || !active.has(t.after.node.index) {
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
func (d *Definition) findAfter(machine *node, name NodeID, event EventName, ofMachine bool) *after {
	n := machine
	if !ofMachine {
		n = d.find(machine, name)
	}
	if n == nil {
		return nil
	}
	for _, a := range n.after {
		if a.event == event {
			return a
		}
	}
	return nil
}

// append writes where an invoke stands: machine, node and its number there.
func (inv *invoke) append(dst []byte) []byte {
	dst = packed.AppendText(dst, inv.node.machine.id)
	dst = packed.AppendText(dst, inv.node.id)
	return binary.AppendUvarint(dst, uint64(inv.number)) //nolint:gosec // not negative
}

// readInvoke returns nil when the definition has no such invoke.
func (d *Definition) readInvoke(rd *packed.Reader, ofMachine bool) *invoke {
	machine, name, number := d.regions[MachineID(rd.Text())], NodeID(rd.Text()), rd.Uvarint()
	if rd.Failed() || machine == nil || machine.machine != machine {
		return nil
	}
	n := machine
	if !ofMachine {
		n = d.find(machine, name)
	}
	if n == nil || number >= uint64(len(n.invoke)) {
		return nil
	}
	return n.invoke[number]
}
