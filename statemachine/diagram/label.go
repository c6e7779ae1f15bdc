package diagram

import (
	"strings"

	"troupe/statemachine"
)

// trigger says what a transition waits for, in the words of a reader; empty for an eventless one.
func (w *phrases) trigger(t *statemachine.ChartTransition) string {
	switch t.Trigger {
	case statemachine.Always:
		return ""
	case statemachine.AfterDelay:
		if t.Wait == 0 && t.Delay != "0" {
			return w.after + t.Delay
		}
		return w.after + w.duration(t.Wait)
	case statemachine.OnDone:
		return w.done
	case statemachine.InvokeDone:
		return w.childDone
	case statemachine.InvokeError:
		return w.childFailed
	}
	if text := t.Label.For(); text != "" {
		return text
	}
	return t.Event
}

// nodeText is how people see a node: its label, or its id.
func nodeText(n *statemachine.ChartNode) string {
	if text := n.Label.For(); text != "" {
		return text
	}
	return string(n.ID)
}

// isRenamed reports whether people see a node by another name than its id.
func isRenamed(n *statemachine.ChartNode) bool { return nodeText(n) != string(n.ID) }

// guard is the condition of a transition; that of one without a condition behind others of the same trigger is
// called "else".
func (w *phrases) guard(n *statemachine.ChartNode, k int) string {
	t := &n.Transitions[k]
	if t.Guard != "" {
		return strings.Join(strings.Fields(t.Guard), " ")
	}
	for i := range k {
		if before := &n.Transitions[i]; before.Guard != "" && before.Trigger == t.Trigger && before.Event == t.Event {
			return w.otherwise
		}
	}
	return ""
}

// full is transition with the name of an event that has another label.
func (w *phrases) full(n *statemachine.ChartNode, k int) string {
	text, t := w.transition(n, k), &n.Transitions[k]
	if t.Trigger == statemachine.OnEvent && w.trigger(t) != t.Event {
		text += " (" + t.Event + ")"
	}
	return text
}

// transition is the whole label of a transition: "event [guard]".
func (w *phrases) transition(n *statemachine.ChartNode, k int) string {
	text := w.trigger(&n.Transitions[k])
	if guard := w.guard(n, k); guard != "" {
		text = strings.TrimLeft(text+" ["+guard+"]", " ")
	}
	return text
}

// notes are what a node does that is drawn inside it: the children that it has, and the reactions that do not leave it.
func (w *phrases) notes(n *statemachine.ChartNode) (notes []note) {
	for _, workflow := range n.Invokes {
		text := w.runs + workflow
		notes = append(notes, note{text: text, full: text, transition: -1})
	}
	for k := range n.Transitions {
		if len(n.Transitions[k].Targets) == 0 {
			text, full := w.transition(n, k), w.full(n, k)
			if text == "" {
				text, full = w.always, w.always
			}
			notes = append(notes, note{text: text, full: full, transition: k})
		}
	}
	return notes
}

type note struct {
	text       string
	full       string // with what a tooltip says besides
	transition int    // of the node; -1: an invoke
}
