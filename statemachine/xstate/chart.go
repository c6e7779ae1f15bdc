package xstate

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"troupe/statemachine"
	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

const machineName = "main"

// maxStates is how many states a definition may have (statemachine/DEFINITION.md, "Limits").
const maxStates = 4000

func (r *reader) chart(s *state) {
	s.kind = r.kindOf(s.at)
	if id := s.at.Field("id"); id != nil && s.parent != nil {
		s.id = r.Text(id)
	}
	if r.byID[s.id] != nil {
		r.add(s.at, "give one of them another id", "two states have the id %q", s.id)
	}
	r.byID[s.id] = s
	r.states = append(r.states, s)
	states := s.at.Field("states")
	if states == nil {
		return
	}
	if states.Kind != document.Mapping {
		r.Add(states, "states must be an object of states by name")
		return
	}
	for _, f := range states.Fields {
		if len(r.states) > maxStates {
			return
		}
		if f.Value.Kind != document.Mapping {
			r.add(f.Value, "{} is a state without anything", "a state must be an object")
			continue
		}
		c := &state{key: f.Key.Text, id: s.id + "." + f.Key.Text, at: f.Value, parent: s}
		s.children = append(s.children, c)
		if s.byKey == nil {
			s.byKey = map[string]*state{}
		}
		s.byKey[c.key] = c
		r.chart(c)
	}
}

// kindOf is what a state is: XState takes it from the keys when there is no type.
func (r *reader) kindOf(n *document.Node) tree.Kind {
	if t := n.Field("type"); t != nil {
		k := tree.Kind(r.Text(t))
		if !slices.Contains([]tree.Kind{tree.Atomic, tree.Compound, tree.Parallel, tree.Final, tree.History}, k) {
			r.add(t, "atomic, compound, parallel, final or history", "%q is not a type of state", t.Text)
		}
		return k
	}
	switch states := n.Field("states"); {
	case states != nil && len(states.Fields) > 0:
		return tree.Compound
	case n.Field("history") != nil:
		return tree.History
	}
	return tree.Atomic
}

// nameStates gives each state the name of its node: its key, and where several states have the same key, the keys of
// states around it before it, as far as needed.
func (r *reader) nameStates() {
	root := r.states[0]
	root.name = machineName
	if m := r.native.Field("machine"); tree.IsWord(m) {
		root.name = m.Text
	}
	if r.native != nil {
		for _, s := range r.states[1:] {
			s.name = s.key // the names are ours, and the parser judges them
		}
		return
	}
	count := map[string]int{}
	for _, s := range r.states[1:] {
		count[nodeName(s.key)]++
	}
	used := map[string]bool{machineName: true}
	take := func(s *state, name string) {
		s.name = name
		used[name] = true
	}
	for _, s := range r.states[1:] { // NB: those at the top have no other name
		if name := nodeName(s.key); !used[name] && (count[name] == 1 || s.parent.parent == nil) {
			take(s, name)
		}
	}
	for _, s := range r.states[1:] {
		if s.name == "" {
			take(s, qualified(s, used))
		}
	}
}

func qualified(s *state, used map[string]bool) string {
	full := s.key
	for p := s.parent; p != nil && p.parent != nil; p = p.parent {
		full = p.key + "-" + full
		if utf8.RuneCountInString(full) > longestName {
			break
		}
		if name := nodeName(full); !used[name] {
			return name
		}
	}
	short := []rune(nodeName(s.key))
	short = short[:min(len(short), longestName-6)]
	for i := 2; ; i++ {
		if name := string(short) + "-" + strconv.Itoa(i); !used[name] {
			return name
		}
	}
}

// eventName checks the name of an event, which callers use, so that it cannot be changed here.
func (r *reader) eventName(at *document.Node, name string) bool {
	switch {
	case name == "":
		r.add(at, `use "always"`, "an event without a name")
	case strings.HasPrefix(name, "xstate."):
		r.add(at, "use onDone, onError or after", "%q is an event that XState itself raises", name)
	case statemachine.IsReserved(statemachine.EventName(name)):
		r.add(at, "give it another name", "only the machine itself raises events like %q here", name)
	default:
		if _, ok := statemachine.ParseEventName(name); ok {
			return true
		}
		r.add(at, "letters, digits and _, inside also . : ~ -, at most 128 bytes: "+strconv.Quote(tree.Clipped(nodeName(strings.ReplaceAll(name, " ", "_")), 100)),
			"%q cannot be the name of an event here", tree.Clipped(name, 100))
	}
	return false
}

type state struct {
	key      string
	id       string // its own one, or the machine's id and the path
	name     string // the node's in the definition; unique among all states
	kind     tree.Kind
	at       *document.Node // its configuration
	parent   *state         // nil: the root
	children []*state
	byKey    map[string]*state
}

func (s *state) contains(other *state) bool {
	for p := other.parent; p != nil; p = p.parent {
		if p == s {
			return true
		}
	}
	return false
}

func (s *state) child(key string) *state { return s.byKey[key] }

func (s *state) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return s.at.Field(key) != nil })
}
