package xstate

import (
	"regexp"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

// params is how conditions and values in the maps of names see the params of a guard or action.
var params = regexp.MustCompile(`\bparams\b`)

// bounds of what names can grow into.
const (
	maxNested    = 16
	maxCondition = 16_384 // statemachine/DEFINITION.md, "Limits"
)

func (r *reader) guardOf(n *document.Node) *document.Node {
	if tree.IsWord(n) {
		if named := r.guards.get(n.Text); named != nil && !r.guards.hasParams(named) {
			return tree.Text(n, n.Text)
		}
	} else if t := n.Field("type"); tree.IsWord(t) && n.Field("params") == nil {
		if named := r.guards.get(t.Text); named != nil && !r.guards.hasParams(named) {
			r.known(n, []string{"type", "params"}, nil)
			return tree.Text(t, t.Text)
		}
	}
	text := r.condition(n)
	if text == "" {
		return nil
	}
	return tree.Text(n, text)
}

// names is one of the maps of names at the top.
type names struct {
	node   *document.Node // nil: none
	byName map[string]*document.Node
	// params has which entries speak of params, as far as that was asked.
	params map[*document.Node]bool
	native bool // of an export of ours, where params means nothing
}

func newNames(n *document.Node) *names {
	out := &names{node: n, byName: map[string]*document.Node{}, params: map[*document.Node]bool{}}
	if n != nil {
		for _, f := range n.Fields {
			out.byName[f.Key.Text] = f.Value
		}
	}
	return out
}

func (n *names) get(name string) *document.Node { return n.byName[name] }

// hasParams reports whether an entry, or anything in it, speaks of params.
func (n *names) hasParams(entry *document.Node) bool {
	if n.native {
		return false
	}
	known, ok := n.params[entry]
	if !ok {
		known = speaksOfParams(entry)
		n.params[entry] = known
	}
	return known
}

func speaksOfParams(n *document.Node) bool {
	if n.Kind == document.String {
		return params.MatchString(n.Text)
	}
	return slices.ContainsFunc(n.Items, speaksOfParams) ||
		slices.ContainsFunc(n.Fields, func(f document.Field) bool { return speaksOfParams(f.Value) })
}

// condition returns the CEL of a guard: a name, an object with a type, or one that is put together.
func (r *reader) condition(n *document.Node) string {
	switch {
	case tree.IsWord(n):
		return r.namedCondition(n, n.Text, nil)
	case n.Kind == document.Null:
		r.add(n, `name the guard, and give its condition in a map "guards" at the top`, "the guard was a function, which JSON leaves out")
		return ""
	case n.Kind != document.Mapping || !tree.IsWord(n.Field("type")):
		r.add(n, `{"type": "name"}`, "a guard is a name or an object with a type")
		return ""
	}
	t := n.Field("type")
	if r.guards.get(t.Text) != nil {
		r.known(n, []string{"type", "params"}, nil)
		return r.namedCondition(t, t.Text, n.Field("params"))
	}
	switch strings.TrimPrefix(t.Text, "xstate.") {
	case "and":
		return r.joined(n, " && ")
	case "or":
		return r.joined(n, " || ")
	case "not":
		if inner := r.joined(n, " && "); inner != "" {
			return "!(" + inner + ")"
		}
		return ""
	case "stateIn":
		return r.stateIn(n)
	}
	return r.namedCondition(t, t.Text, n.Field("params"))
}

func (r *reader) namedCondition(at *document.Node, name string, given *document.Node) string {
	entry := r.guards.get(name)
	if entry == nil {
		advice := `give its condition in CEL at the top: "guards": {` + data.Quote(name) + `: "…"}`
		if r.faults < faultsShown {
			if near := document.Closest(name, tree.KeysOf(r.guards.node)); near != "" {
				advice = "did you mean " + data.Quote(near) + "?"
			}
		}
		r.add(at, advice, "the guard %s has no condition: JSON has no functions", data.Quote(name))
		return ""
	}
	if !r.enter(at, "guard", name) {
		return ""
	}
	defer r.leave()
	text := ""
	if tree.IsWord(entry) {
		text = tree.Condition(entry.Text)
		if text == "" {
			r.add(entry, "write a condition in CEL", "the guard %s is empty", data.Quote(name))
		}
	} else {
		text = r.condition(entry)
	}
	if !r.grow(at, len(text)) {
		return ""
	}
	return r.bound(at, text, given)
}

func (r *reader) bound(at *document.Node, text string, given *document.Node) string {
	if text == "" || !params.MatchString(text) {
		return text
	}
	literal := "{}"
	if given != nil {
		v, err := given.Data()
		if err != nil {
			r.add(given, "", "%v", err)
			return ""
		}
		literal = v.String() // NB: JSON is CEL as well, but for an escaped slash, which Data does not write
	}
	return r.fits(at, "cel.bind(params, "+literal+", "+text+")")
}

// fits refuses a condition that names have made too long.
func (r *reader) fits(at *document.Node, text string) string {
	if len(text) > maxCondition {
		r.add(at, "say it in fewer words", "the condition has more than %d bytes", maxCondition)
		return ""
	}
	return text
}

// grow bounds what names become, where they are used.
func (r *reader) grow(at *document.Node, bytes int) bool {
	const most = 1 << 20 // as a definition may have
	before := r.grown
	if r.grown += bytes; before <= most && r.grown > most {
		r.add(at, "say it in fewer words", "the named guards and actions become more than 1 MiB where they are used")
	}
	return r.grown <= most
}

func (r *reader) enter(at *document.Node, what, name string) bool {
	key := what + " " + name
	if slices.Contains(r.expanding, key) {
		r.add(at, "", "the %s %s contains itself", what, data.Quote(name))
		return false
	}
	if len(r.expanding) >= maxNested {
		r.add(at, "", "names are nested deeper than %d", maxNested)
		return false
	}
	r.expanding = append(r.expanding, key)
	return true
}

func (r *reader) leave() { r.expanding = r.expanding[:len(r.expanding)-1] }

func (r *reader) joined(n *document.Node, operator string) string {
	inner := firstField(n, "guards", "guard", "children")
	var parts []string
	for _, g := range tree.Items(inner) {
		text := r.condition(g)
		if text == "" {
			return ""
		}
		parts = append(parts, "("+text+")")
	}
	if len(parts) == 0 {
		r.add(n, `{"type": "and", "guards": ["a", "b"]}`, "%q without guards: they were functions, which JSON leaves out", n.Field("type").Text)
		return ""
	}
	return r.fits(n, strings.Join(parts, operator))
}

func firstField(n *document.Node, keys ...string) *document.Node {
	for _, at := range []*document.Node{n, n.Field("params")} {
		for _, key := range keys {
			if v := at.Field(key); v != nil {
				return v
			}
		}
	}
	return nil
}

func (r *reader) stateIn(n *document.Node) string {
	v := firstField(n, "stateValue", "state", "value")
	if v == nil {
		r.add(n, `{"type": "stateIn", "stateValue": "#id"}`, "stateIn without a state")
		return ""
	}
	var states []*state
	if tree.IsWord(v) {
		to := r.states[0].find(statePath(v.Text))
		if strings.HasPrefix(v.Text, "#") {
			to = r.byID[v.Text[1:]] // XState compares whole ids here
		}
		states = append(states, to)
	} else {
		states = r.inValue(states, r.states[0], v)
	}
	if len(states) == 0 || slices.Contains(states, nil) {
		r.add(v, "", "stateIn names a state that is not there")
		return ""
	}
	parts := make([]string, len(states))
	for i, s := range states {
		parts[i] = "In(" + string(data.AppendString(nil, s.name)) + ")"
	}
	return r.fits(n, strings.Join(parts, " && "))
}

func (r *reader) inValue(out []*state, s *state, v *document.Node) []*state {
	if tree.IsWord(v) {
		return append(out, s.find(statePath(v.Text)))
	}
	for _, f := range v.Fields {
		c := s.child(f.Key.Text)
		if c == nil {
			return append(out, nil)
		}
		if len(f.Value.Fields) == 0 && f.Value.Kind == document.Mapping {
			out = append(out, c)
			continue
		}
		out = r.inValue(out, c, f.Value)
	}
	return out
}

func (r *reader) guardMap() *document.Node {
	if r.guards.node == nil || r.native != nil {
		return r.guards.node
	}
	out := tree.Mapping(r.guards.node)
	for _, f := range r.guards.node.Fields {
		if r.guards.hasParams(f.Value) {
			continue // it stands in full wherever it is used, with the params
		}
		text := f.Value.Text
		if !tree.IsWord(f.Value) {
			text = r.namedCondition(f.Key, f.Key.Text, nil)
		}
		tree.PutAt(out, f.Key, f.Key.Text, tree.Text(f.Value, text))
	}
	if len(out.Fields) == 0 {
		return nil
	}
	return out
}
