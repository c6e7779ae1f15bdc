package appendixd

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"troupe/statemachine/document"
)

// execute carries out one element of executable content. It reports whether it could be carried out.
func (i *interpreter) execute(action *document.Node) bool {
	of := action.Fields[0].Value
	switch action.Fields[0].Key.Text {
	case "log":
		line, ok := i.text(of.Text)
		if ok {
			i.log = append(i.log, line)
		}
		return ok
	case "assign":
		n, ok := i.value(of.Fields[0].Value.Text)
		if ok {
			i.datamodel[strings.TrimPrefix(of.Fields[0].Key.Text, "svcPublic.")] = n
		}
		return ok
	case "raise":
		e := Event{Name: of.Field("event").Text}
		if !e.bring(i, of.Field("data")) {
			return false
		}
		i.count("raised events")
		i.enqueue(e)
		return true
	case "send":
		return i.send(of)
	case "cancel":
		if !i.wrong("cancels nothing") {
			i.end("timers cancelled by id", func(t Timer) bool { return t.ID == of.Text })
		}
		return true
	case "if":
		return i.choose(action)
	}
	panic("the interpreter does not know " + action.Fields[0].Key.Text)
}

// bring evaluates the data of an event; nil is none.
func (e *Event) bring(i *interpreter, from *document.Node) bool {
	if from == nil {
		return true
	}
	value, ok := i.value(from.Field("n").Text)
	if ok {
		e.Data = &value
	}
	return ok
}

// send has an event come later. It has no id when nobody cancels it.
func (i *interpreter) send(of *document.Node) bool {
	e := Event{Name: of.Field("event").Text}
	if !e.bring(i, of.Field("data")) {
		return false
	}
	wait, ok := i.delay(of.Field("delay").Text)
	if ok {
		i.begin(Timer{Event: e, Due: i.now + wait, ID: textOf(of.Field("id"))})
	}
	return ok
}

func (i *interpreter) choose(action *document.Node) bool {
	for _, branch := range append([]*document.Node{action}, itemsOf(action.Field("elseif"))...) {
		if holds, ok := i.holds(branch.Field("if").Text); !ok || holds {
			return ok && i.executeAll(branch.Field("then").Items)
		}
	}
	return i.executeAll(itemsOf(action.Field("else")))
}

// value evaluates an integer: a literal, the sum of a variable and a literal, or the member n of the event's data. It has
// none when a part of it is missing.
func (i *interpreter) value(text string) (n int, ok bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return n, true
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "${"), "}")
	if text == "event.data.n" {
		if i.event == nil || i.event.Data == nil {
			return 0, false
		}
		return *i.event.Data, true
	}
	variable, literal, _ := strings.Cut(strings.TrimPrefix(text, "svcPublic."), " + ")
	n, ok = i.datamodel[variable]
	more, err := strconv.Atoi(literal)
	return n + more, ok && err == nil
}

var inserted = regexp.MustCompile(`\$\{[^}]*\}`)

func (i *interpreter) text(template string) (text string, ok bool) {
	ok = true
	return inserted.ReplaceAllStringFunc(template, func(part string) string {
		if part == "${event.name}" {
			if ok = ok && i.event != nil; ok {
				return i.event.Name
			}
			return ""
		}
		n, known := i.value(part)
		ok = ok && known
		return strconv.Itoa(n)
	}), ok
}

// constants are delays as they stand in a file, in milliseconds.
var constants = map[string]int{"PT1S": 1000, "2s": 2000, "1000": 1000, "PT0S": 0}

// delay is a constant, or an integer of milliseconds.
func (i *interpreter) delay(text string) (milliseconds int, ok bool) {
	if milliseconds, ok = constants[text]; ok {
		return milliseconds, true
	}
	milliseconds, ok = i.value(text)
	return milliseconds, ok && milliseconds >= 0
}

// holds evaluates conditions that are joined by &&. It is false when one of them is, whatever the others are; otherwise it is
// neither true nor false when one of them looks at what is not there.
func (i *interpreter) holds(text string) (holds, ok bool) {
	ok = true
	for condition := range strings.SplitSeq(text, " && ") {
		holds, known := i.holdsAlone(condition)
		if known && !holds {
			return false, true
		}
		ok = ok && known
	}
	return true, ok
}

func (i *interpreter) holdsAlone(condition string) (holds, known bool) {
	if name, ok := strings.CutPrefix(condition, "event.name == "); ok {
		return i.event != nil && strconv.Quote(i.event.Name) == name, i.event != nil
	}
	if call, ok := strings.CutPrefix(strings.TrimPrefix(condition, "!"), "In("); ok {
		name := strings.Trim(call, `")`) // of a state in any machine, or in one
		isActive := slices.ContainsFunc(i.configuration, func(s *State) bool { return name == s.ID || name == s.Machine().ID+"."+s.ID })
		return isActive != strings.HasPrefix(condition, "!"), true
	}
	variable, literal, _ := strings.Cut(strings.TrimPrefix(condition, "svcPublic."), " < ")
	n, known := i.datamodel[variable]
	most, err := strconv.Atoi(literal)
	return n < most, known && err == nil
}

// executeContent carries out one block. An error ends the block, and error.execution is put on the internal queue
// (section 4.9).
func (i *interpreter) executeContent(block []*document.Node) {
	if !i.executeAll(block) && i.undone == "" {
		i.raiseError()
	}
}

func (i *interpreter) executeAll(block []*document.Node) bool {
	for _, action := range block {
		if !i.boundActions() || !i.execute(action) || i.undone != "" {
			return false
		}
	}
	return true
}

// conditionMatch evaluates a guard. One that cannot be evaluated is false, and error.execution is put on the internal
// queue (section 5.9.1).
func (i *interpreter) conditionMatch(t *Transition) bool {
	if t.Cond == "" || i.wrong("ignores guards") {
		return true
	}
	holds, ok := i.holds(t.Cond)
	if !ok {
		i.count("guards that fail")
		i.raiseError()
	}
	return ok && holds
}
