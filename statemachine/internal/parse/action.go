package parse

import (
	"cmp"
	"slices"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/check"
	"troupe/statemachine/internal/clause"
)

func (b *builder) actions(n *document.Node) []chart.Action {
	if n == nil || n.Kind == document.Null {
		return nil
	}
	items := n.Items
	if n.Kind != document.Sequence {
		items = []*document.Node{n}
	}
	var out []chart.Action
	var lines []int
	for _, item := range items {
		more := b.action(item)
		for k := range more {
			lines = append(lines, cmp.Or(b.Definition.Places.Actions[&more[k]], item.Line)) // a named one stands elsewhere
			delete(b.Definition.Places.Actions, &more[k])
		}
		out = append(out, more...)
	}
	for k, line := range lines {
		b.Definition.Places.Actions[&out[k]] = line
	}
	return out
}

// action reads one action. A named one stands for its whole list.
func (b *builder) action(n *document.Node) []chart.Action {
	if b.built++; b.built > MaxParsedActions {
		if b.built == MaxParsedActions+1 {
			b.Add(n, "more than %d actions, named ones counted where they are used", MaxParsedActions)
		}
		return nil
	}
	if n.Kind == document.String {
		return b.namedAction(n)
	}
	if n.Kind == document.Sequence && b.IsSCXML() {
		return one(&chart.Block{Actions: b.actions(n)})
	}
	if n.Kind != document.Mapping || len(n.Fields) == 0 {
		b.Add(n, "an action is a name or a mapping such as {raise: event}")
		return nil
	}
	key, v := n.Fields[0].Key, n.Fields[0].Value
	if key.Text == "if" {
		return one(b.choose(n))
	}
	b.Mapping(n, clause.ActionKeys)
	if len(n.Fields) > 1 {
		b.Add(n, "one action a mapping: make a list of them")
	}
	switch key.Text {
	case "assign":
		return one(b.assign(v))
	case "raise":
		return one(b.raise(v))
	case "send":
		return one(b.send(v))
	case "cancel":
		return one(b.cancel(v))
	case "webhook":
		return one(b.sendOut(v))
	case "mail":
		return one(b.sendMail(v))
	case "redirect":
		return one(&chart.Redirect{To: b.Template(v)})
	case "log":
		if _, isExpression := chart.SplitText(v.Text); v.Kind == document.String && (len(isExpression) != 1 || !isExpression[0]) {
			return one(&chart.LogLine{Text: b.Prose(v)})
		}
		return one(&chart.LogLine{Message: b.Template(v)})
	case "foreach":
		return one(b.forEach(v))
	}
	return nil
}

func one(a chart.Action) []chart.Action { return []chart.Action{a} }

func (b *builder) namedAction(n *document.Node) []chart.Action {
	named := b.namedActions[n.Text]
	if named == nil {
		b.Suggest(n, n.Text, clause.KeysOf(b.namedActions), "unknown action %q", data.Shorten(n.Text))
		return nil
	}
	if b.ShapeOnly {
		return nil
	}
	if slices.Contains(b.expanding, n.Text) {
		b.Add(n, "action %q contains itself", data.Shorten(n.Text))
		return nil
	}
	if len(b.expanding) >= MaxActionDepth {
		b.Add(n, "actions are nested deeper than %d", MaxActionDepth)
		return nil
	}
	b.expanding = append(b.expanding, n.Text)
	defer func() { b.expanding = b.expanding[:len(b.expanding)-1] }()
	return b.actions(named)
}

// Bounds of what named actions can grow into.
const (
	MaxActionDepth   = 16
	MaxParsedActions = 10_000
)

func (b *builder) assign(n *document.Node) chart.Action {
	if n.Kind != document.Mapping {
		b.Add(n, "assign is a mapping of paths to values")
		return &chart.Assign{}
	}
	if b.IsSCXML() {
		return b.setPlaces(n)
	}
	a := &chart.Assign{}
	for _, f := range n.Fields {
		p, err := data.ParsePath(f.Key.Text)
		s := chart.Setting{Value: b.Template(f.Value)}
		switch {
		case err != nil:
			b.Add(f.Key, "%v", err)
			continue
		case p[0] == "svcPublic":
			s.Root = chart.Public
		case p[0] == "svcPrivate":
			s.Root = chart.Private
		default:
			b.Suggest(f.Key, p[0], []string{"svcPublic", "svcPrivate"},
				"cannot assign to %q: a path starts with svcPublic or svcPrivate", data.Shorten(f.Key.Text))
			continue
		}
		s.Path = p[1:]
		a.Settings = append(a.Settings, s)
	}
	return a
}

func (b *builder) raise(n *document.Node) chart.Action {
	a := &chart.Raise{}
	at := n
	if n.Kind == document.Mapping {
		b.Mapping(n, clause.RaiseKeys)
		if at = n.Field("event"); at == nil {
			b.Add(n, "raise needs an event")
			return a
		}
		if v := n.Field("data"); v != nil {
			a.Data = b.Template(v)
		}
	}
	name, ok := chart.ParseEventName(b.Text(at))
	if !ok || chart.IsReserved(name) && !b.IsSCXML() {
		b.Add(at, "%q cannot be raised", data.Shorten(at.Text))
		return a
	}
	a.Event = name
	b.Raised = append(b.Raised, check.RaisedEvent{At: at, Name: name, ByAction: true})
	return a
}

func (b *builder) send(n *document.Node) chart.Action {
	if b.IsSCXML() {
		return b.dispatch(n)
	}
	a := &chart.Send{}
	if !b.Mapping(n, clause.SendKeys) {
		return a
	}
	at := n.Field("event")
	if at == nil {
		b.Add(n, "send needs an event")
		return a
	}
	name, ok := chart.ParseEventName(b.Text(at))
	if !ok || chart.IsReserved(name) {
		b.Add(at, "%q cannot be sent", data.Shorten(at.Text))
		return a
	}
	a.Event = name
	b.Raised = append(b.Raised, check.RaisedEvent{At: at, Name: name, ByAction: true})
	if v := n.Field("data"); v != nil {
		a.Data = b.Template(v)
	}
	if v := n.Field("delay"); v != nil {
		a.Delay = b.Delay(v)
	}
	if v := n.Field("id"); v != nil {
		a.ID = b.Text(v)
		b.Sent = append(b.Sent, a.ID)
	}
	return a
}

func (b *builder) cancel(n *document.Node) chart.Action {
	if n.Kind != document.String {
		b.Add(n, "cancel takes the id of a send")
		return &chart.Cancel{}
	}
	if _, ok := chart.Expression(n.Text); !ok {
		b.Cancelled = append(b.Cancelled, n)
	}
	return &chart.Cancel{ID: b.Template(n)}
}

// choose reads {if, then, elseif: [{if, then}], else}.
func (b *builder) choose(n *document.Node) chart.Action {
	b.Mapping(n, clause.IfKeys)
	c := &chart.Choose{Lenient: b.IsSCXML()}
	add := func(n *document.Node) {
		if n.Field("if") == nil || n.Field("then") == nil {
			b.Add(n, "needs \"if\" and \"then\"")
			return
		}
		c.Branches = append(c.Branches, chart.Branch{Guard: b.Guard(n.Field("if")), Actions: b.actions(n.Field("then"))})
	}
	add(n)
	if more := n.Field("elseif"); more != nil {
		items := more.Items
		if older := b.Stored && more.Kind != document.Mapping; more.Kind != document.Sequence && !older { // a text was no fault once
			items = []*document.Node{more}
		}
		for _, item := range items {
			if b.Mapping(item, clause.BranchKeys) {
				add(item)
			}
		}
	}
	if last := n.Field("else"); last != nil {
		c.Branches = append(c.Branches, chart.Branch{Guard: nil, Actions: b.actions(last)})
	}
	return c
}

func (b *builder) forEach(n *document.Node) chart.Action {
	if !b.Mapping(n, clause.ForEachKeys) {
		return &chart.ForEach{}
	}
	if b.IsSCXML() {
		return b.forEachPlace(n)
	}
	a := &chart.ForEach{}
	list := n.Field("array")
	if list == nil || n.Field("item") == nil || n.Field("do") == nil {
		b.Add(n, "foreach needs \"array\", \"item\" and \"do\"")
		return a
	}
	text := b.Text(list)
	if inner, ok := chart.Expression(text); ok {
		text = inner
	}
	p, err := b.Compile(list, text, b.LanguageHere().Compile)
	a.List = b.Compiled(list, p, err)
	outer := len(b.Locals)
	defer func() { b.Locals = b.Locals[:outer] }()
	name := func(key string) string {
		at := n.Field(key)
		if at == nil {
			return ""
		}
		v := b.Text(at)
		older := b.Stored && v == "parent" // it was no word of the language then
		if !clause.VariableName.MatchString(v) || slices.Contains(clause.ReservedVariables, v) && !older || slices.Contains(b.Locals, v) {
			b.Add(at, "%q cannot be a variable here", data.Shorten(v))
			return ""
		}
		b.Locals = append(b.Locals, v)
		return v
	}
	a.Item, a.Index = name("item"), name("index")
	a.Body = b.actions(n.Field("do"))
	return a
}
