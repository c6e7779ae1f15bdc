package appendixd

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// grammar has the texts of each word of testdata/grammar.txt.
var grammar = func() map[string][]string {
	text, err := os.ReadFile("testdata/grammar.txt")
	if err != nil {
		panic(err)
	}
	words, name := map[string][]string{}, ""
	for line := range strings.SplitSeq(string(text), "\n") {
		number, one, _ := strings.Cut(line, " ")
		if times, err := strconv.Atoi(number); err == nil {
			words[name] = append(words[name], slices.Repeat([]string{one}, times)...)
		} else {
			name = line
		}
	}
	return words
}()

var inText = regexp.MustCompile(`<[a-z A-Z]+>`)

// text draws one of the texts of a word.
func (d *drawing) text(word string) string {
	texts := grammar[word]
	if d.rights && grammar[word+" with rights"] != nil {
		texts = grammar[word+" with rights"]
	}
	if texts == nil {
		return d.known(word)
	}
	return inText.ReplaceAllStringFunc(pick(d, texts...), func(inner string) string { return d.text(strings.Trim(inner, "<>")) })
}

// known draws what depends on the nodes, or on what was drawn before.
func (d *drawing) known(word string) string {
	switch word {
	case "self":
		return d.self.ID
	case "n":
		d.traces++
		return strconv.Itoa(d.traces)
	case "below":
		d.counter = pick(d, "c0", "c1", "c2")
		return fmt.Sprintf("svcPublic.%s < %d", d.counter, 2+d.below(8))
	case "count": // what "below" was drawn of
		return fmt.Sprintf("{assign: {svcPublic.%s: '${svcPublic.%[1]s + 1}'}}", d.counter)
	case "source":
		return pick(d, append([]*State{d.machine.root}, d.machine.sources...)...).ID
	case "active":
		s := pick(d, append([]*State{d.machine.root}, d.machine.sources...)...)
		if s != d.machine.root && d.percent(50) {
			return d.machine.root.ID + "." + s.ID
		}
		return s.ID
	case "targets":
		return strings.Join(ids(d.targets()), ", ")
	}
	panic("no word is called " + word)
}

func ids(states []*State) (all []string) {
	for _, s := range states {
		all = append(all, s.ID)
	}
	return all
}

func (d *drawing) targets() []*State {
	if inside := below(d.self, true); len(inside) > 0 && d.percent(10) {
		return []*State{pick(d, inside...)}
	}
	if d.percent(15) {
		if several := d.orthogonal(append(d.machine.states, d.machine.root)); several != nil {
			return several
		}
	}
	var histories []*State
	for _, s := range d.machine.states {
		if isHistoryState(s) {
			histories = append(histories, s)
		}
	}
	if len(histories) > 0 && d.percent(25) {
		return []*State{pick(d, histories...)}
	}
	return []*State{pick(d, d.machine.states...)}
}

// head is what stands before the state machines, when those are drawn.
func (d *drawing) head() string {
	head := fmt.Sprintf("id: random\n%s\ncontext: {svcPublic: {%s: 0}}\nevents:\n", d.text("unmatched"), strings.Join(variables, ": 0, "))
	for _, name := range d.sendable() {
		if slices.Contains(d.patterns, name) { // one that only a pattern takes would look like a slip
			if text := d.text("declaration"); text != "" {
				head += "  " + name + ": " + text + "\n"
			}
		}
	}
	return strings.TrimSuffix(head, "events:\n")
}

func (d *drawing) line(indent int, text string) {
	if text != "" {
		d.b.WriteString(strings.Repeat("  ", indent) + text + "\n")
	}
}

var typeLines = map[Kind]string{Parallel: "type: parallel", Final: "type: final", ShallowHistory: "type: history", DeepHistory: "type: history"}

func (d *drawing) write(s *State, indent int) {
	d.self = s
	d.line(indent, s.ID+":")
	indent++
	d.line(indent, typeLines[s.Kind])
	if isHistoryState(s) {
		if s.Kind == DeepHistory {
			d.line(indent, "history: deep")
		}
		if s.Default != nil {
			d.line(indent, "target: "+s.Default[0].ID)
		}
		return
	}
	if s.Kind == Compound && d.percent(40) {
		d.line(indent, "initial: ["+strings.Join(ids(d.initial(s)), ", ")+"]")
	}
	d.line(indent, d.text("entry"))
	d.line(indent, d.text("exit"))
	if s.Kind == Final {
		d.line(indent, d.text("output"))
		return
	}
	d.transitions(s, indent)
	if len(s.Children) > 0 {
		d.line(indent, "states:")
	}
	for _, c := range s.everyChild() {
		d.write(c, indent+1)
	}
}

func (d *drawing) initial(s *State) []*State {
	if several := d.orthogonal(below(s, false)); several != nil && d.percent(50) {
		return several
	}
	to := pick(d, below(s, true)...)
	if isHistoryState(to) && to.Parent == s && to.Default == nil {
		to = s.Children[0]
	}
	return []*State{to}
}

// transitions writes those of a state: "onDone" before or behind "on", and in that each key once.
func (d *drawing) transitions(s *State, indent int) {
	var keys, reactions []string
	if d.machine.led[s] != "" {
		reactions = append(reactions, d.machine.led[s])
	}
	for range d.below(4) {
		reactions = append(reactions, d.text("reaction"))
	}
	if s == d.machine.root && !d.rights && d.percent(60) {
		reactions = append(reactions, "error.execution {actions: ["+d.text("log")+"]}")
	}
	done := ""
	if s != d.machine.root && s.Kind != Atomic {
		done = d.text("onDone")
	}
	doneFirst := d.percent(50)
	if doneFirst {
		d.line(indent, done)
	}
	of := map[string][]string{}
	for _, reaction := range reactions {
		key, transition, _ := strings.Cut(reaction, " ")
		if of[key] == nil {
			keys = append(keys, key)
		}
		of[key] = append(of[key], transition)
	}
	if len(keys) > 0 {
		d.line(indent, "on:")
	}
	for _, key := range keys {
		d.line(indent+1, "'"+key+"': ["+strings.Join(of[key], ", ")+"]")
	}
	if !doneFirst {
		d.line(indent, done)
	}
	d.line(indent, d.text("always"))
	d.line(indent, d.text("after"))
	d.patterns = append(d.patterns, keys...)
}
