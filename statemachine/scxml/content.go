package scxml

import (
	"errors"
	"slices"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
)

func (i *importer) actions(elements []*element) *document.Node {
	out := list()
	for _, e := range elements {
		if n := i.action(e); n != nil {
			out.Items = append(out.Items, n)
		}
	}
	return out
}

func one(key string, v *document.Node) *document.Node { return newMapping().set(key, v).Node }

func (i *importer) action(e *element) *document.Node {
	switch {
	case e.space == troupeSpace:
		return i.ownAction(e)
	case !e.isSCXML():
		i.Add(e.at(), "the action <%s> of another namespace cannot be expressed", e.name)
		return nil
	}
	switch e.name {
	case "raise":
		i.attributes(e, "event")
		return one("raise", text(i.eventName(e)))
	case "log":
		i.attributes(e, "label", "expr")
		if own, ok := e.own("text"); ok {
			return one("log", text(own))
		}
		if own := i.ownValue(e, "value"); own != nil {
			return one("log", own)
		}
		return one("log", text(i.logText(e)))
	case "assign":
		i.attributes(e, "location", "expr")
		location, _ := e.attribute("location")
		return one("assign", newMapping().set(i.place(e, location), i.content2(e)).Node)
	case "if":
		return i.choose(e)
	case "foreach":
		return i.forEach(e)
	case "send":
		n := i.send(e)
		if _, own := e.own("raise"); own {
			raised := mapping{n}
			raised.remove("to")
			return one("raise", n)
		}
		return one("send", n)
	case "cancel":
		i.attributes(e, "sendid", "sendidexpr")
		return one("cancel", i.either(e, "sendid", "sendidexpr"))
	case "script":
		i.script(e)
		return nil
	}
	i.Add(e.at(), "<%s> is not an action", e.name)
	return nil
}

func (i *importer) eventName(e *element) string {
	name, _ := e.attribute("event")
	i.checkEvent(e, name)
	return name
}

func (i *importer) checkEvent(e *element, name string) {
	if _, ok := statemachine.ParseEventName(name); !ok {
		i.Add(e.at(), "%q cannot be the name of an event", name).Suggestion = "letters, digits and . _ : ~ -, at most 128"
	}
}

// content2 is the value of an element with expr, or with content inside.
func (i *importer) content2(e *element) *document.Node {
	if own := i.ownValue(e, "value"); own != nil {
		return own
	}
	if expr, ok := e.attribute("expr"); ok && strings.TrimSpace(expr) != "" {
		return i.value(e, expr)
	}
	return i.inline(e)
}

// inline is the content of an element: JSON, or a text whose blanks do not count (W3C SCXML, section B.2.1).
func (i *importer) inline(e *element) *document.Node {
	if len(e.children) > 0 {
		i.Add(e.children[0].at(), "XML as data cannot be expressed: data is JSON")
		return nil
	}
	if v, err := data.Clean([]byte(strings.TrimSpace(e.text))); err == nil && len(v) > 0 {
		return literal(v)
	}
	words := strings.Join(strings.Fields(e.text), " ")
	if words == "" {
		return &document.Node{Kind: document.Null}
	}
	return literal(data.AppendString(nil, words))
}

// either reads a text that is given, or computed by another attribute; nil when neither is there.
func (i *importer) either(e *element, given, computed string) *document.Node {
	if expr, ok := e.attribute(computed); ok {
		if _, both := e.attribute(given); both {
			i.Add(e.at(), "<%s> has either %s or %s", e.name, given, computed)
		}
		return i.value(e, expr)
	}
	v, ok := e.attribute(given)
	if !ok {
		return nil
	}
	return literal(data.AppendString(nil, v))
}

func (i *importer) choose(e *element) *document.Node {
	i.attributes(e, "cond")
	cond, _ := e.attribute("cond")
	branches := []mapping{newMapping().set("if", text(i.condition(e, cond)))}
	last := list()
	var otherwise *document.Node
	closeBranch := func() {
		if otherwise == nil {
			branches[len(branches)-1].set("then", last)
		}
	}
	for _, c := range e.children {
		switch {
		case c.isSCXML() && c.name == "elseif" && otherwise == nil:
			i.attributes(c, "cond")
			closeBranch()
			cond, _ := c.attribute("cond")
			branches, last = append(branches, newMapping().set("if", text(i.condition(c, cond)))), list()
		case c.isSCXML() && c.name == "else" && otherwise == nil:
			i.attributes(c)
			closeBranch()
			last = list()
			otherwise = last
		default:
			if n := i.action(c); n != nil {
				last.Items = append(last.Items, n)
			}
		}
	}
	closeBranch()
	out := branches[0]
	if len(branches) > 1 {
		more := list()
		for _, b := range branches[1:] {
			more.Items = append(more.Items, b.Node)
		}
		out.set("elseif", more)
	}
	return out.set("else", otherwise).Node
}

func (i *importer) forEach(e *element) *document.Node {
	i.attributes(e, "array", "item", "index")
	m := newMapping()
	array, _ := e.attribute("array")
	item, _ := e.attribute("item")
	m.set("array", text(i.expression(e, array)))
	m.set("item", text(i.loopVariable(e, item)))
	if index, ok := e.attribute("index"); ok {
		m.set("index", text(i.loopVariable(e, index)))
	}
	return one("foreach", m.set("do", i.actions(e.children)).Node)
}

// loopVariable is the place of a variable of foreach. With our own semantics it is a name.
func (i *importer) loopVariable(e *element, name string) string {
	if i.semantics != "scxml" {
		return name
	}
	return i.place(e, name)
}

// send reads what is sent. What has no type goes to an SCXML session.
func (i *importer) send(e *element) *document.Node {
	i.attributes(e, "event", "eventexpr", "target", "targetexpr", "type", "typeexpr", "id", "idlocation", "delay", "delayexpr", "namelist")
	i.children(e, "param", "content")
	i.processor(e)
	m := newMapping()
	if m.set("event", i.either(e, "event", "eventexpr")); m.Field("event") == nil {
		i.Add(e.at(), "<send> without an event cannot be expressed")
	}
	if event := m.Field("event"); event != nil && !isExpression(event) {
		i.checkEvent(e, event.Text)
	}
	m.set("to", i.either(e, "target", "targetexpr"))
	m.set("type", i.either(e, "type", "typeexpr"))
	m.set("delay", i.either(e, "delay", "delayexpr"))
	if delay, ok := e.attribute("delay"); ok {
		if _, err := statemachine.ParseDelay(delay); err != nil {
			i.Add(e.at(), "the delay %q: %v", shorten(delay), err).Suggestion = "such as 1.5s, 200ms or P2D; 0s is at once"
		}
	}
	if id, ok := e.attribute("id"); ok {
		m.set("id", text(id))
	}
	if location, ok := e.attribute("idlocation"); ok {
		m.set("idTo", text(i.place(e, location)))
	}
	value, params := i.payload(e)
	return m.set("data", value).set("params", params).Node
}

// processor refuses the event processors that a definition does not have.
func (i *importer) processor(e *element) {
	if kind, _ := e.attribute("type"); strings.Contains(strings.ToLower(kind), "basichttp") {
		i.Add(e.at(), "the BasicHTTP event processor cannot be expressed").Suggestion = "add a webhook to the definition"
	}
}

func (i *importer) isParameterTwice(e *element, name string) bool {
	count := 0
	for _, c := range e.all("param") {
		if v, _ := c.attribute("name"); v == name {
			count++
		}
	}
	return count > 1
}

func isExpression(n *document.Node) bool {
	return n.Kind == document.String && strings.HasPrefix(n.Text, "${")
}

// payload reads namelist, content and param: a value that is needed as a whole, and members that are left out when they fail.
func (i *importer) payload(e *element) (value, params *document.Node) {
	names, _ := e.attribute("namelist")
	whole, members := newMapping(), newMapping()
	for _, name := range strings.Fields(names) {
		whole.set(name, text("${"+i.expression(e, name)+"}"))
	}
	value = whole.orNil()
	for _, c := range e.all("content") {
		if e.name == "invoke" {
			continue
		}
		i.attributes(c, "expr")
		if value != nil || len(e.all("param")) > 0 {
			i.Add(c.at(), "<content> cannot stand beside a namelist or <param>")
		}
		value = i.content2(c)
	}
	for _, c := range e.all("param") {
		i.attributes(c, "name", "expr", "location")
		name, _ := c.attribute("name")
		expr, ok := c.attribute("expr")
		if !ok {
			expr, ok = c.attribute("location")
		}
		if !ok || name == "" {
			i.Add(c.at(), "<param> needs a name, and expr or location")
			continue
		}
		if members.Field(name) != nil {
			i.note(c, "the parameter %s stands twice: the last one counts", name)
		}
		if own := i.ownValue(c, "value"); own != nil {
			members.set(name, own)
			continue
		}
		members.set(name, i.value(c, expr))
	}
	if own := i.ownValue(e, "data"); own != nil {
		for _, f := range own.Fields { // NB: they stand among the parameters for others
			if name := f.Key.Text; members.Field(name) != nil && !i.isParameterTwice(e, name) {
				members.remove(name)
			}
		}
		value = own
	}
	return value, members.orNil()
}

// In a document with the data model cel, expressions are CEL already. Its variables are members of svcPublic here, so their names change
// and nothing else does. A document that Export has written speaks of svcPublic itself, and keeps every byte.

func (i *importer) isForeignCEL() bool {
	_, exported := i.root.own("semantics")
	return i.isCEL && !exported
}

// celNames are what expressions of CEL can name besides the data: the variables of a definition, and types.
var celNames = []string{
	"_event", "event", "svcPublic", "svcPrivate", "user", "instance", "parent", "now",
	"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint", "google", "optional_type",
}

// celNamed are the variables of SCXML that a definition says otherwise.
func (i *importer) celNamed(name string) string {
	switch name {
	case "_sessionid":
		return "instance.id"
	case "_name":
		if i.title == "" {
			return "null"
		}
		return string(data.AppendString(nil, i.title))
	}
	return ""
}

// renamed returns an expression of CEL as a definition has it. What names something that nobody declares is a fault.
func (i *importer) renamed(e *element, src string) string {
	if !i.isForeignCEL() {
		return src
	}
	var unknown []string
	out, err := expr.Rename(src, func(name string) string {
		to := i.variable(name)
		if to == "" {
			to = i.celNamed(name)
		}
		if to == "" && !slices.Contains(celNames, name) && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
		return to
	})
	if err != nil {
		reason := err.Error()
		if fault := (*expr.CompileError)(nil); errors.As(err, &fault) {
			reason = fault.Reason
		}
		i.Add(e.at(), "%q is not a CEL expression: %s", shorten(src), reason)
		return src
	}
	for _, name := range unknown {
		i.Add(e.at(), "%q reads %q, which no data has as its id", shorten(src), name).Suggestion = document.DidYouMean(name, i.data)
	}
	return out
}

// celPlace is where an assignment goes: a variable, or a member of one.
func (i *importer) celPlace(e *element, location string) string {
	if !i.isForeignCEL() {
		return location
	}
	name := location[:max(0, strings.IndexAny(location+".", ".["))]
	to := location
	switch {
	case name == "svcPublic" || name == "svcPrivate":
	case slices.Contains(i.data, name):
		to = "svcPublic." + location
	default:
		i.Add(e.at(), "nothing can be assigned to %q: no data has the id %q", shorten(location), shorten(name)).Suggestion = document.DidYouMean(name, i.data)
		return location
	}
	if _, err := data.ParsePath(to); err != nil || strings.ContainsAny(to, `[]"`) {
		i.Add(e.at(), "the location %q cannot be expressed", shorten(location))
	}
	return to
}
