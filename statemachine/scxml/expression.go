package scxml

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/scxml/ecmascript"
)

func (i *importer) declare(e *element) {
	for _, c := range e.children {
		if !c.isSCXML() {
			continue
		}
		switch c.name {
		case "content": // a document inside has variables of its own
			continue
		case "data":
			id, ok := c.attribute("id")
			if !ok || strings.TrimSpace(id) == "" || strings.ContainsAny(id, ". \t\r\n") {
				i.Add(c.at(), "%q cannot be the id of data", id)
			}
			if !i.isCEL || id != "svcPublic" && id != "svcPrivate" {
				i.addVariable(id)
			}
		case "foreach":
			for _, key := range []string{"item", "index"} {
				if v, ok := c.attribute(key); ok && isName(v) && (!i.isCEL || i.isForeignCEL()) {
					i.addVariable(v)
				}
			}
		}
		i.declare(c)
	}
}

func (i *importer) addVariable(name string) {
	if !slices.Contains(i.data, name) {
		i.data = append(i.data, name)
	}
}

func isName(s string) bool {
	e, err := ecmascript.Parse(s)
	if err != nil || strings.HasPrefix(s, "_") {
		return false
	}
	variable, path, ok := e.Place()
	return ok && len(path) == 0 && variable == s
}

func (i *importer) variable(name string) string {
	if !slices.Contains(i.data, name) {
		return ""
	}
	for at, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (at == 0 || r < '0' || r > '9') || name == "in" {
			return "svcPublic[" + string(data.AppendString(nil, name)) + "]"
		}
	}
	return "svcPublic." + name
}

func (i *importer) scope() ecmascript.Names {
	return ecmascript.Names{Variable: i.variable, Title: i.title}
}

func (i *importer) parse(e *element, src string) *ecmascript.Expression {
	x, err := ecmascript.Parse(src)
	if err != nil {
		i.refuse(e, src, err)
		return nil
	}
	if x.IsBroken() {
		i.note(e, "%q is not an expression, and fails when it runs", shorten(src))
	}
	i.checkUses(e, src, x)
	return x
}

// checkUses notes names that look like slips. SCXML takes them: what reads such a variable fails when it runs, and nobody is in such a state.
func (i *importer) checkUses(e *element, src string, x *ecmascript.Expression) {
	if i.slips >= maxSlips {
		return
	}
	uses := x.Uses()
	for _, name := range uses.Variables {
		if !slices.Contains(i.data, name) {
			i.noteUnknown(e, name, i.data, "%q reads %q, which no data has as its id, and fails when it runs", shorten(src), name)
		}
	}
	for _, name := range uses.States {
		if i.known[name] == nil {
			i.noteUnknown(e, name, i.stateIDs(), "%q asks for the state %q, which is not there: it is always false", shorten(src), name)
		}
	}
}

func (i *importer) noteUnknown(e *element, name string, known []string, reason string, args ...any) {
	if i.slips++; i.slips <= maxSlips {
		i.addNote(document.Fault{File: i.File, Line: e.line, Reason: fmt.Sprintf(reason, args...), Suggestion: document.DidYouMean(name, known)})
	}
}

// maxSlips bounds how many names that look like slips are told.
const maxSlips = 20

func (i *importer) refuse(e *element, src string, err error) {
	f := i.Add(e.at(), "%q: %v", shorten(src), err)
	if refused := (*ecmascript.Refused)(nil); errors.As(err, &refused) {
		f.Suggestion = "expressions become CEL, which computes values and runs no code"
	}
}

func shorten(s string) string { return data.Clip(strings.Join(strings.Fields(s), " "), 80) }

func (i *importer) condition(e *element, src string) string {
	return i.write(e, src, (*ecmascript.Expression).Condition)
}

func (i *importer) expression(e *element, src string) string {
	return i.write(e, src, (*ecmascript.Expression).Value)
}

func (i *importer) write(e *element, src string, how func(*ecmascript.Expression, ecmascript.Names) (string, error)) string {
	if i.isCEL {
		return i.renamed(e, src)
	}
	x := i.parse(e, src)
	if x == nil {
		return ""
	}
	out, err := how(x, i.scope())
	if err != nil {
		i.refuse(e, src, err)
	}
	return out
}

// value is an expression as a value of the definition: a literal as itself.
func (i *importer) value(e *element, src string) *document.Node {
	if !i.isCEL {
		x := i.parse(e, src)
		if x == nil {
			return nil
		}
		if v, ok := x.Constant(); ok {
			return literal(v)
		}
	}
	return text("${" + i.expression(e, src) + "}")
}

// place is where an assignment goes. What nobody declares stays as it is: nothing can be assigned to it when it runs.
func (i *importer) place(e *element, location string) string {
	location = strings.TrimSpace(location)
	if i.isCEL {
		return i.celPlace(e, location)
	}
	bad := "undeclared." + strings.ReplaceAll(location, "svcP", "svc.P")
	x, err := ecmascript.Parse(location)
	if err != nil {
		i.refuse(e, location, err)
		return bad
	}
	if x.IsBroken() {
		return bad
	}
	name, path, ok := x.Place()
	if !ok {
		if _, constant := x.Constant(); !constant {
			i.Add(e.at(), "the location %q is computed, which cannot be expressed", shorten(location))
		}
		return bad
	}
	if !slices.Contains(i.data, name) {
		if strings.HasPrefix(name, "_") {
			i.note(e, "nothing can be assigned to %q: it is the interpreter's own", shorten(location))
		} else {
			i.noteUnknown(e, name, i.data, "nothing can be assigned to %q: no data has the id %q", shorten(location), name)
		}
		return bad
	}
	for _, segment := range append([]string{name}, path...) {
		if _, err := data.ParsePath("svcPublic." + segment); err != nil || strings.Contains(segment, ".") {
			i.Add(e.at(), "the location %q cannot be expressed", shorten(location))
			return bad
		}
	}
	return strings.Join(append([]string{"svcPublic", name}, path...), ".")
}

func (i *importer) logText(e *element) string {
	label, labelled := e.attribute("label")
	expr, ok := e.attribute("expr")
	var parts []ecmascript.Part
	if labelled && label != "" {
		parts = append(parts, ecmascript.Part{Literal: label})
		if ok && strings.TrimSpace(expr) != "" {
			parts[0].Literal += ": "
		}
	}
	switch {
	case !ok || strings.TrimSpace(expr) == "":
	case i.isCEL:
		parts = append(parts, ecmascript.Part{Value: i.renamed(e, expr)})
	default:
		if x := i.parse(e, expr); x != nil {
			more, err := x.Text(i.scope())
			if err != nil {
				i.refuse(e, expr, err)
			}
			parts = append(parts, more...)
		}
	}
	var out strings.Builder
	for _, part := range parts {
		if part.Value != "" {
			out.WriteString("${" + part.Value + "}")
			continue
		}
		out.WriteString(strings.ReplaceAll(part.Literal, "${", `${"${"}`))
	}
	return out.String()
}
