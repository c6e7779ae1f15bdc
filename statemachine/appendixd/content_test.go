package appendixd

import (
	"fmt"
	"strings"
)

// Content is what a file says and what it means: its text in YAML, or in CEL, and what the interpreter does with it.
type (
	// Action is one element of executable content. It reports whether it could be carried out.
	Action struct {
		text    string
		execute func(i *interpreter) bool
	}
	// Expression is an integer. It has none when a part of it is missing.
	Expression struct {
		text     string
		evaluate func(i *interpreter) (int, bool)
	}
	// Condition is true or false. It is neither when a part of it is missing.
	Condition struct {
		text  string
		match func(i *interpreter) (holds, ok bool)
	}
	// Branch is one branch of a choice. Cond: nil for the last one, that is else.
	Branch struct {
		Cond *Condition
		Then []Action
	}
	// Delay is a constant, or an expression of milliseconds.
	Delay struct {
		text         string
		milliseconds int
		value        *Expression
	}
)

func number(n int) *Expression {
	return &Expression{fmt.Sprint(n), func(*interpreter) (int, bool) { return n, true }}
}

func sum(variable string, n int) *Expression {
	return &Expression{fmt.Sprintf("'${svcPublic.%s + %d}'", variable, n), func(i *interpreter) (int, bool) { return i.datamodel[variable] + n, true }}
}

func eventData() *Expression {
	return &Expression{"'${event.data.n}'", func(i *interpreter) (int, bool) {
		if i.event == nil || i.event.Data == nil {
			return 0, false
		}
		return *i.event.Data, true
	}}
}

func missing() *Expression {
	return &Expression{"'${svcPublic.missing}'", func(*interpreter) (int, bool) { return 0, false }}
}

func less(variable string, n int) *Condition {
	return &Condition{fmt.Sprintf("svcPublic.%s < %d", variable, n), func(i *interpreter) (holds, ok bool) { return i.datamodel[variable] < n, true }}
}

// unknown is neither true nor false, because it looks at a variable that is not there.
func unknown() *Condition {
	return &Condition{"svcPublic.missing > 0", func(*interpreter) (holds, ok bool) { return false, false }}
}

func eventIs(event string) *Condition {
	return &Condition{fmt.Sprintf("event.name == %q", event), func(i *interpreter) (holds, ok bool) {
		return i.event != nil && i.event.Name == event, i.event != nil
	}}
}

// in holds while a state of this name is active: in any machine, or in one; not: while none is.
func in(machine, state string, not bool) *Condition {
	name := state
	if machine != "" {
		name = machine + "." + state
	}
	return &Condition{map[bool]string{true: "!"}[not] + fmt.Sprintf("In(%q)", name), func(i *interpreter) (holds, ok bool) {
		for _, s := range i.configuration {
			if s.ID == state && (machine == "" || machine == s.Machine().ID) {
				return !not, true
			}
		}
		return not, true
	}}
}

// and holds when both hold. It is false when one of them is, whatever the other one is.
func and(a, b *Condition) *Condition {
	return &Condition{"(" + a.text + ") && (" + b.text + ")", func(i *interpreter) (holds, ok bool) {
		x, xOK := a.match(i)
		y, yOK := b.match(i)
		if xOK && !x || yOK && !y {
			return false, true
		}
		return true, xOK && yOK
	}}
}

func assign(variable string, value *Expression) Action {
	return Action{fmt.Sprintf("{assign: {svcPublic.%s: %s}}", variable, value.text), func(i *interpreter) bool {
		n, ok := value.evaluate(i)
		if ok {
			i.datamodel[variable] = n
		}
		return ok
	}}
}

func raise(event string, data *Expression) Action {
	return Action{"{raise: {event: " + event + dataText(data) + "}}", func(i *interpreter) bool {
		e := Event{Name: event}
		if !e.bring(i, data) {
			return false
		}
		i.count("raised events")
		i.enqueue(e)
		return true
	}}
}

func dataText(data *Expression) string {
	if data == nil {
		return ""
	}
	return ", data: {n: " + data.text + "}"
}

// bring evaluates the data of an event; nil is none.
func (e *Event) bring(i *interpreter, from *Expression) bool {
	if from == nil {
		return true
	}
	value, ok := from.evaluate(i)
	if ok {
		e.Data = &value
	}
	return ok
}

// send has an event come later. id: "" when nobody cancels it.
func send(event string, data *Expression, delay Delay, id string) Action {
	text := "{send: {event: " + event + dataText(data) + ", delay: '" + delay.text + "'"
	if id != "" {
		text += ", id: " + id
	}
	return Action{text + "}}", func(i *interpreter) bool {
		e := Event{Name: event}
		if !e.bring(i, data) {
			return false
		}
		wait, ok := delay.evaluate(i)
		if ok {
			i.begin(Timer{Event: e, Due: i.now + wait, ID: id})
		}
		return ok
	}}
}

func (d Delay) evaluate(i *interpreter) (milliseconds int, ok bool) {
	if d.value == nil {
		return d.milliseconds, true
	}
	value, ok := d.value.evaluate(i)
	return value, ok && value >= 0
}

func cancel(id string) Action {
	return Action{"{cancel: " + id + "}", func(i *interpreter) bool {
		if !i.wrong("cancels nothing") {
			i.end("timers cancelled by id", func(t Timer) bool { return t.ID == id })
		}
		return true
	}}
}

func log(text string, value *Expression) Action {
	if value == nil {
		return Action{"{log: '" + text + "'}", func(i *interpreter) bool { i.log = append(i.log, text); return true }}
	}
	return Action{"{log: '" + text + " " + strings.Trim(value.text, "'") + "'}", func(i *interpreter) bool {
		n, ok := value.evaluate(i)
		if ok {
			i.log = append(i.log, fmt.Sprintf("%s %d", text, n))
		}
		return ok
	}}
}

func logEvent(text string) Action {
	return Action{"{log: '" + text + " ${event.name}'}", func(i *interpreter) bool {
		if i.event != nil {
			i.log = append(i.log, text+" "+i.event.Name)
		}
		return i.event != nil
	}}
}

func choice(branches []Branch) Action {
	var text, more string
	for k, b := range branches {
		then := actions(b.Then)
		switch {
		case b.Cond == nil:
			text += ", else: " + then
		case k == 0:
			text = "if: '" + b.Cond.text + "', then: " + then
		default:
			more += "{if: '" + b.Cond.text + "', then: " + then + "}, "
		}
	}
	if more != "" {
		text += ", elseif: [" + strings.TrimSuffix(more, ", ") + "]"
	}
	return Action{"{" + text + "}", func(i *interpreter) bool {
		for _, b := range branches {
			holds, ok := true, true
			if b.Cond != nil {
				holds, ok = b.Cond.match(i)
			}
			if !ok || holds {
				return ok && i.executeAll(b.Then)
			}
		}
		return true
	}}
}

func actions(list []Action) string {
	var texts []string
	for _, a := range list {
		texts = append(texts, a.text)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// executeContent carries out one block. An error ends the block, and error.execution is put on the internal queue
// (section 4.9).
func (i *interpreter) executeContent(block []Action) {
	if !i.executeAll(block) && i.undone == "" {
		i.raiseError()
	}
}

func (i *interpreter) executeAll(block []Action) bool {
	for _, a := range block {
		if !i.boundActions() || !a.execute(i) || i.undone != "" {
			return false
		}
	}
	return true
}

// conditionMatch evaluates a guard. One that cannot be evaluated is false, and error.execution is put on the internal
// queue (section 5.9.1).
func (i *interpreter) conditionMatch(t *Transition) bool {
	if t.Cond == nil || i.wrong("ignores guards") {
		return true
	}
	holds, ok := t.Cond.match(i)
	if !ok {
		i.count("guards that fail")
		i.raiseError()
	}
	return ok && holds
}
