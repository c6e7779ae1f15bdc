package diagram

import (
	"strconv"
	"strings"
	"time"

	"troupe/statemachine"
)

// triggerText says what a transition waits for, in the words of a reader; empty for an eventless one.
func triggerText(t *statemachine.ChartTransition) string {
	switch t.Trigger {
	case statemachine.Always:
		return ""
	case statemachine.AfterDelay:
		if t.Wait == 0 && t.Delay != "0" {
			return "after " + t.Delay
		}
		return "after " + durationText(t.Wait)
	case statemachine.OnDone:
		return "done"
	case statemachine.InvokeDone:
		return "child done"
	case statemachine.InvokeError:
		return "child failed"
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

// guardText is the condition of a transition; that of one without a condition behind others of the same trigger is
// "else".
func guardText(n *statemachine.ChartNode, k int) string {
	t := &n.Transitions[k]
	if t.Guard != "" {
		return strings.Join(strings.Fields(t.Guard), " ")
	}
	for i := range k {
		if before := &n.Transitions[i]; before.Guard != "" && before.Trigger == t.Trigger && before.Event == t.Event {
			return "else"
		}
	}
	return ""
}

// fullText is transitionText with the name of an event that has another label.
func fullText(n *statemachine.ChartNode, k int) string {
	text, t := transitionText(n, k), &n.Transitions[k]
	if t.Trigger == statemachine.OnEvent && triggerText(t) != t.Event {
		text += " (" + t.Event + ")"
	}
	return text
}

// transitionText is the whole label of a transition: "event [guard]".
func transitionText(n *statemachine.ChartNode, k int) string {
	text := triggerText(&n.Transitions[k])
	if guard := guardText(n, k); guard != "" {
		text = strings.TrimLeft(text+" ["+guard+"]", " ")
	}
	return text
}

// durationText says a duration with its two largest units: "2 days", "1 hour 30 minutes".
func durationText(d time.Duration) string {
	if d >= time.Second && d < time.Minute && d%time.Second != 0 {
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " seconds"
	}
	var parts []string
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := int64(d / unit.of); n > 0 && len(parts) < 2 {
			parts = append(parts, plural(n, unit.name))
			d %= unit.of
		}
	}
	if len(parts) == 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strings.Join(parts, " ")
}

func plural(n int64, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return strconv.FormatInt(n, 10) + " " + name + "s"
}

// nodeNotes are what a node does that is drawn inside it: the children that it has, and the reactions that do not
// leave it.
func nodeNotes(n *statemachine.ChartNode) (notes []note) {
	for _, workflow := range n.Invokes {
		text := "runs " + workflow
		notes = append(notes, note{text: text, full: text, transition: -1})
	}
	for k := range n.Transitions {
		if len(n.Transitions[k].Targets) == 0 {
			text, full := transitionText(n, k), fullText(n, k)
			if text == "" {
				text, full = "always", "always"
			}
			notes = append(notes, note{text: text, full: full, transition: k})
		}
	}
	return notes
}

// note is a line in a node.
type note struct {
	text       string
	full       string // with what a tooltip says besides
	transition int    // of the node; -1: an invoke
}
