package record

import (
	"encoding/binary"
	"hash/crc32"

	"troupe/statemachine/internal/chart"
	"troupe/statemachine/packed"
)

// Append appends the stored form of the instance:
//
//	format(1) version sequence created updated  (varints; times in ms)
//	chain(16) states redirect public private memory  (each with its length)
//	sections of what there is: kind(1) text          (in ascending order of kinds)
//	crc32c(4) of all before it
func Append(dst []byte, d *chart.Definition, in *Instance, chain Chain, attachment []byte) []byte {
	start := len(dst)
	dst = append(dst, recordFormat)
	dst = binary.AppendUvarint(dst, d.Version)
	dst = binary.AppendUvarint(dst, in.Sequence)
	dst = packed.AppendTime(dst, in.CreatedAt)
	dst = packed.AppendTime(dst, in.UpdatedAt)
	dst = append(dst, chain[:]...)
	dst = packed.AppendText(dst, in.State.At.States)
	dst = packed.AppendText(dst, in.Redirect)
	dst = packed.AppendText(dst, in.Public)
	dst = packed.AppendText(dst, in.Private)
	dst = packed.AppendText(dst, appendMemory(nil, d, in.State.Memory))
	dst = appendSections(dst, attachment, appendTimers(nil, in.State.Timers), appendChildren(nil, in.State.Children), appendParent(nil, &in.State), appendTasks(nil, in.State.Tasks), []byte(in.Key()), appendJobs(nil, in.State.Jobs))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// appendSections writes what there is of the sections.
func appendSections(dst, attachment, timers, children, parent, tasks, key, jobs []byte) []byte {
	for i, text := range [...][]byte{attachmentSection: attachment, timerSection: timers, childSection: children, parentSection: parent, taskSection: tasks, keySection: key, jobSection: jobs} {
		if len(text) > 0 {
			dst = packed.AppendText(append(dst, byte(i)), text)
		}
	}
	return dst
}

// appendMemory writes the memory of history nodes by name, because a node has another index in another version of the definition.
func appendMemory(dst []byte, d *chart.Definition, memories []Memory) []byte {
	for _, m := range memories {
		h := d.Nodes[m.History]
		dst = packed.AppendText(dst, h.Machine.ID)
		dst = packed.AppendText(dst, h.ID)
		dst = binary.AppendUvarint(dst, uint64(len(m.Nodes)))
		for _, i := range m.Nodes {
			dst = packed.AppendText(dst, d.Nodes[i].ID)
		}
	}
	return dst
}

// appendTimers writes timers, those of nodes by name, as appendMemory does.
func appendTimers(dst []byte, timers []TimerState) []byte {
	for i := range timers {
		t := &timers[i]
		var flags byte
		if t.Failed {
			flags |= timerFailed
		}
		if t.To != "" {
			flags |= timerAimed
		}
		switch {
		case t.Child != nil:
			flags |= timerChild
			if t.Child.Failed {
				flags |= timerChildFailed
			}
			if n := t.Child.Invoke.Node; n.Machine == n {
				flags |= timerOfMachine
			}
		case t.After == nil:
			flags |= timerSent
		case t.After.Node.Machine == t.After.Node:
			flags |= timerOfMachine
		}
		dst = append(dst, flags)
		dst = t.ID.append(dst)
		dst = packed.AppendTime(dst, t.Due)
		dst = packed.AppendText(dst, t.Name())
		if t.After != nil {
			dst = packed.AppendText(dst, t.After.Node.Machine.ID)
			dst = packed.AppendText(dst, t.After.Node.ID)
			continue
		}
		if t.Child != nil {
			dst = packed.AppendText(appendInvoke(dst, t.Child.Invoke), t.Data)
			continue
		}
		dst = packed.AppendText(dst, t.Send)
		dst = packed.AppendText(dst, t.Data)
		if t.To != "" {
			dst = packed.AppendText(dst, t.To)
		}
	}
	return dst
}

// appendChildren writes each: status and flag(1) sequence number begun, in ms, and where the invoke stands.
func appendChildren(dst []byte, children []ChildState) []byte {
	for i := range children {
		c := &children[i]
		flags := byte(c.Status)
		if c.Invoke.Node.Machine == c.Invoke.Node {
			flags |= childOfMachine
		}
		if c.Name != "" {
			flags |= childNamed
		}
		if c.Heard != (ElementID{}) {
			flags |= childHeard
		}
		dst = append(dst, flags)
		dst = c.ID.append(dst)
		dst = packed.AppendTime(dst, c.Begun)
		dst = appendInvoke(dst, c.Invoke)
		if c.Name != "" {
			dst = packed.AppendText(packed.AppendText(dst, c.Name), c.Workflow)
		}
		if c.Heard != (ElementID{}) {
			dst = c.Heard.append(dst)
		}
	}
	return dst
}

// appendInvoke writes where an invoke stands: machine, node and its number there.
func appendInvoke(dst []byte, inv *chart.Invoke) []byte {
	dst = packed.AppendText(dst, inv.Node.Machine.ID)
	dst = packed.AppendText(dst, inv.Node.ID)
	return binary.AppendUvarint(dst, uint64(inv.Number)) //nolint:gosec // not negative
}

// appendParent writes flags(1) and, where there is a parent, workflow, instance, sequence, number and depth.
func appendParent(dst []byte, s *State) []byte {
	if s.Parent == nil && !s.Ended && !s.Aside {
		return dst
	}
	var flags byte
	if s.Ended {
		flags |= parentEnded
	}
	if s.Aside {
		flags |= parentAside
	}
	if s.Parent == nil {
		return append(dst, flags)
	}
	flags |= parentThere
	if s.Parent.Heard != (ElementID{}) {
		flags |= parentHeard
	}
	dst = packed.AppendText(append(dst, flags), s.Parent.Workflow)
	dst = packed.AppendText(dst, s.Parent.Instance)
	dst = s.Parent.Child.append(dst)
	dst = binary.AppendUvarint(dst, uint64(s.Parent.Depth)) //nolint:gosec // not negative
	if flags&parentHeard != 0 {
		dst = s.Parent.Heard.append(dst)
	}
	return dst
}

// appendTasks writes the tasks, their nodes by name, as appendMemory does.
func appendTasks(dst []byte, tasks []TaskState) []byte {
	for i := range tasks {
		t := &tasks[i]
		dst = t.ID.append(dst)
		dst = packed.AppendText(dst, t.Node.Machine.ID)
		dst = packed.AppendText(dst, t.Node.ID)
		dst = packed.AppendTime(dst, t.Created)
		due := int64(0)
		if !t.Due.IsZero() {
			due = t.Due.UnixMilli()
		}
		dst = binary.AppendVarint(dst, due)
		dst = packed.AppendText(dst, t.Assignee)
	}
	return dst
}
