package statemachine

import (
	"cmp"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
)

// variable is the form of a foreach variable.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// reservedVariables are the names that every expression knows already.
var reservedVariables = []string{"event", "svcPublic", "svcPrivate", "user", "instance", "parent", "now"}

// env is the expression language where the builder stands: with the variables
// of the foreach bodies around.
func (b *builder) env() *expr.Env {
	if len(b.locals) == 0 {
		return b.language
	}
	env, err := b.language.With(b.locals...)
	if err != nil {
		return b.language
	}
	return env
}

// compileFault turns a compile error into a fault at its line of the file.
func (b *builder) compileFault(n *document.Node, err error) {
	at := *n
	var bad *expr.CompileError
	if errors.As(err, &bad) && bad.Line > 1 {
		at.Line += bad.Line - 1
	}
	b.Add(&at, "expression: %v", err).Suggestion = b.expressionAdvice(err)
	b.harmless++
	if bad != nil {
		for _, more := range bad.More {
			b.compileFault(n, more)
		}
	}
}

// expressionAdvice says what to do about a compile error.
func (b *builder) expressionAdvice(err error) string {
	if bad := (*expr.CompileError)(nil); errors.As(err, &bad) && bad.Fields != nil {
		return "known here: " + strings.Join(bad.Fields, ", ")
	}
	switch reason := err.Error(); {
	case strings.Contains(reason, "token recognition error at: '=<'"):
		return "compare with <="
	case strings.Contains(reason, "token recognition error at: '=>'"):
		return "compare with >="
	case strings.Contains(reason, "token recognition error at: '="):
		return "compare with =="
	case strings.Contains(reason, "too expensive"):
		return "look at less: one list, or a text that a schema bounds"
	case strings.Contains(reason, "reserved identifier: const"):
		return "the file has no constants: const: {…} at its top gives some"
	case strings.Contains(reason, "undeclared reference"):
		known := slices.Concat(reservedVariables, b.locals)
		if b.language != b.parser.env {
			known = append(known, "const")
		}
		return "known here: " + strings.Join(known, ", ")
	case strings.Contains(reason, "no matching overload"):
		return "convert one side with string(), int() or double()"
	case strings.Contains(reason, "the result must be"):
		return "compare it with something, or convert it"
	}
	return "quote the whole expression, and see its language in the documentation of definitions"
}

// guard reads a condition: the name of one under guards, {type: name}, or CEL.
func (b *builder) guard(n *document.Node) *expr.Program {
	if n.Kind == document.Mapping {
		b.known(n, guardKeys)
		mapping := n
		if n = n.Field("type"); n == nil {
			if !b.parser.options.Stored { // it was no fault once
				b.Add(mapping, "a condition is an expression, a name, or {type: name}")
			}
			return nil
		}
		if b.namedGuards[n.Text] == nil {
			b.suggest(n, n.Text, keysOf(b.namedGuards), "unknown guard %q", data.Shorten(n.Text))
			return nil
		}
	}
	text := b.Text(n)
	if named := b.namedGuards[text]; named != nil {
		n, text = named, b.Text(named)
	}
	if inner, ok := chart.Expression(text); ok {
		text = inner
	}
	p, err := b.compile(n, text, b.env().CompileBool)
	compiled := b.compiled(n, p, err)
	if err == nil {
		b.guards = append(b.guards, placedProgram{n, p})
	}
	return compiled
}

// conditionText is a condition as it stands in the file: the name, or the expression without ${ }.
func conditionText(n *document.Node) string {
	if n.Kind == document.Mapping {
		if n = n.Field("type"); n == nil {
			return ""
		}
	}
	if inner, ok := chart.Expression(n.Text); ok {
		return inner
	}
	return n.Text
}

// compiled notes an expression, or its fault. What does not compile fails when it runs,
// so that the rest of the chart can be checked as if it did.
func (b *builder) compiled(n *document.Node, p *expr.Program, err error) *expr.Program {
	if err != nil {
		if !b.shapeOnly && !b.isSCXML() && err != errUncompiled { //nolint:errorlint // it is never wrapped
			b.compileFault(n, err)
		}
		return expr.Failing(err)
	}
	b.programs = append(b.programs, placedProgram{n, p})
	b.d.Places.Programs[p] = n.Line
	return p
}

func keysOf(among map[string]*document.Node) []string { return slices.Sorted(maps.Keys(among)) }

// template reads a value in which strings may be expressions.
func (b *builder) template(n *document.Node) *chart.Template {
	switch n.Kind {
	case document.String:
		if text, ok := chart.Expression(n.Text); ok {
			p, err := b.compile(n, text, b.env().Compile)
			return &chart.Template{Program: b.compiled(n, p, err)}
		}
		if strings.Contains(n.Text, "${") {
			b.slips = append(b.slips, n)
		}
	case document.Mapping:
		t := &chart.Template{Object: true}
		for _, f := range n.Fields {
			t.Keys = append(t.Keys, f.Key.Text)
			t.Values = append(t.Values, b.template(f.Value))
		}
		return folded(t)
	case document.Sequence:
		t := &chart.Template{}
		for _, item := range n.Items {
			t.Values = append(t.Values, b.template(item))
		}
		return folded(t)
	}
	v, err := n.Data()
	if err != nil {
		b.Add(n, "%v", err)
		return nil
	}
	return &chart.Template{Constant: v}
}

// folded turns an object or array without expressions into a constant.
func folded(t *chart.Template) *chart.Template {
	if slices.ContainsFunc(t.Values, func(v *chart.Template) bool { return v == nil || v.Constant == nil }) {
		return t
	}
	v, err := t.Eval(&expr.Scope{})
	if err != nil {
		return t
	}
	return &chart.Template{Constant: v}
}

// actions reads a list of actions, or a single one.
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
			lines = append(lines, cmp.Or(b.d.Places.Actions[&more[k]], item.Line)) // a named one stands elsewhere
			delete(b.d.Places.Actions, &more[k])
		}
		out = append(out, more...)
	}
	for k, line := range lines {
		b.d.Places.Actions[&out[k]] = line
	}
	return out
}

// action reads one action. A named one stands for its whole list.
func (b *builder) action(n *document.Node) []chart.Action {
	if b.built++; b.built > maxParsedActions {
		if b.built == maxParsedActions+1 {
			b.Add(n, "more than %d actions, named ones counted where they are used", maxParsedActions)
		}
		return nil
	}
	if n.Kind == document.String {
		return b.namedAction(n)
	}
	if n.Kind == document.Sequence && b.isSCXML() {
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
	b.known(n, actionKeys)
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
		return one(&chart.Redirect{To: b.template(v)})
	case "log":
		if _, isExpression := SplitText(v.Text); v.Kind == document.String && (len(isExpression) != 1 || !isExpression[0]) {
			return one(&chart.LogLine{Text: b.prose(v)})
		}
		return one(&chart.LogLine{Message: b.template(v)})
	case "foreach":
		return one(b.forEach(v))
	}
	return nil
}

func one(a chart.Action) []chart.Action { return []chart.Action{a} }

func (b *builder) namedAction(n *document.Node) []chart.Action {
	named := b.namedActions[n.Text]
	if named == nil {
		b.suggest(n, n.Text, keysOf(b.namedActions), "unknown action %q", data.Shorten(n.Text))
		return nil
	}
	if b.shapeOnly {
		return nil
	}
	if slices.Contains(b.expanding, n.Text) {
		b.Add(n, "action %q contains itself", data.Shorten(n.Text))
		return nil
	}
	if len(b.expanding) >= maxActionDepth {
		b.Add(n, "actions are nested deeper than %d", maxActionDepth)
		return nil
	}
	b.expanding = append(b.expanding, n.Text)
	defer func() { b.expanding = b.expanding[:len(b.expanding)-1] }()
	return b.actions(named)
}

// Bounds of what named actions can grow into.
const (
	maxActionDepth   = 16
	maxParsedActions = 10_000
)

// assign reads {path: value, …}.
func (b *builder) assign(n *document.Node) chart.Action {
	if n.Kind != document.Mapping {
		b.Add(n, "assign is a mapping of paths to values")
		return &chart.Assign{}
	}
	if b.isSCXML() {
		return b.setPlaces(n)
	}
	a := &chart.Assign{}
	for _, f := range n.Fields {
		p, err := data.ParsePath(f.Key.Text)
		s := chart.Setting{Value: b.template(f.Value)}
		switch {
		case err != nil:
			b.Add(f.Key, "%v", err)
			continue
		case p[0] == "svcPublic":
			s.Root = chart.Public
		case p[0] == "svcPrivate":
			s.Root = chart.Private
		default:
			b.suggest(f.Key, p[0], []string{"svcPublic", "svcPrivate"},
				"cannot assign to %q: a path starts with svcPublic or svcPrivate", data.Shorten(f.Key.Text))
			continue
		}
		s.Path = p[1:]
		a.Settings = append(a.Settings, s)
	}
	return a
}

// raise reads a name, or {event, data}.
func (b *builder) raise(n *document.Node) chart.Action {
	a := &chart.Raise{}
	at := n
	if n.Kind == document.Mapping {
		b.known(n, raiseKeys)
		if at = n.Field("event"); at == nil {
			b.Add(n, "raise needs an event")
			return a
		}
		if v := n.Field("data"); v != nil {
			a.Data = b.template(v)
		}
	}
	name, ok := ParseEventName(b.Text(at))
	if !ok || IsReserved(name) && !b.isSCXML() {
		b.Add(at, "%q cannot be raised", data.Shorten(at.Text))
		return a
	}
	a.Event = name
	b.raised = append(b.raised, raisedEvent{at, name, true})
	return a
}

// send reads {event, data, delay, id}.
func (b *builder) send(n *document.Node) chart.Action {
	if b.isSCXML() {
		return b.dispatch(n)
	}
	a := &chart.Send{}
	if !b.known(n, sendKeys) {
		return a
	}
	at := n.Field("event")
	if at == nil {
		b.Add(n, "send needs an event")
		return a
	}
	name, ok := ParseEventName(b.Text(at))
	if !ok || IsReserved(name) {
		b.Add(at, "%q cannot be sent", data.Shorten(at.Text))
		return a
	}
	a.Event = name
	b.raised = append(b.raised, raisedEvent{at, name, true})
	if v := n.Field("data"); v != nil {
		a.Data = b.template(v)
	}
	if v := n.Field("delay"); v != nil {
		a.Delay = b.delay(v)
	}
	if v := n.Field("id"); v != nil {
		a.ID = b.Text(v)
		b.sent = append(b.sent, a.ID)
	}
	return a
}

// cancel reads the id of what was sent.
func (b *builder) cancel(n *document.Node) chart.Action {
	if n.Kind != document.String {
		b.Add(n, "cancel takes the id of a send")
		return &chart.Cancel{}
	}
	if _, ok := chart.Expression(n.Text); !ok {
		b.cancelled = append(b.cancelled, n)
	}
	return &chart.Cancel{ID: b.template(n)}
}

// choose reads {if, then, elseif: [{if, then}], else}.
func (b *builder) choose(n *document.Node) chart.Action {
	b.known(n, ifKeys)
	c := &chart.Choose{Lenient: b.isSCXML()}
	add := func(n *document.Node) {
		if n.Field("if") == nil || n.Field("then") == nil {
			b.Add(n, "needs \"if\" and \"then\"")
			return
		}
		c.Branches = append(c.Branches, chart.Branch{Guard: b.guard(n.Field("if")), Actions: b.actions(n.Field("then"))})
	}
	add(n)
	if more := n.Field("elseif"); more != nil {
		items := more.Items
		if older := b.parser.options.Stored && more.Kind != document.Mapping; more.Kind != document.Sequence && !older { // a text was no fault once
			items = []*document.Node{more}
		}
		for _, item := range items {
			if b.known(item, branchKeys) {
				add(item)
			}
		}
	}
	if last := n.Field("else"); last != nil {
		c.Branches = append(c.Branches, chart.Branch{Guard: nil, Actions: b.actions(last)})
	}
	return c
}

// forEach reads {array, item, index, do}.
func (b *builder) forEach(n *document.Node) chart.Action {
	if !b.known(n, forEachKeys) {
		return &chart.ForEach{}
	}
	if b.isSCXML() {
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
	p, err := b.compile(list, text, b.env().Compile)
	a.List = b.compiled(list, p, err)
	outer := len(b.locals)
	defer func() { b.locals = b.locals[:outer] }()
	name := func(key string) string {
		at := n.Field(key)
		if at == nil {
			return ""
		}
		v := b.Text(at)
		older := b.parser.options.Stored && v == "parent" // it was no word of the language then
		if !variable.MatchString(v) || slices.Contains(reservedVariables, v) && !older || slices.Contains(b.locals, v) {
			b.Add(at, "%q cannot be a variable here", data.Shorten(v))
			return ""
		}
		b.locals = append(b.locals, v)
		return v
	}
	a.Item, a.Index = name("item"), name("index")
	a.Body = b.actions(n.Field("do"))
	return a
}
