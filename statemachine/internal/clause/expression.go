package clause

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/check"
)

// VariableName is the form of a foreach variable.
var VariableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// ReservedVariables are the names that every expression knows already.
var ReservedVariables = []string{"event", "svcPublic", "svcPrivate", "user", "instance", "parent", "now"}

// LanguageHere is the expression language where the builder stands: with the variables of the foreach bodies around.
func (b *Reader) LanguageHere() *expr.Env {
	if len(b.Locals) == 0 {
		return b.Language
	}
	env, err := b.Language.With(b.Locals...)
	if err != nil {
		return b.Language
	}
	return env
}

func (b *Reader) compileFault(n *document.Node, err error) {
	at := *n
	var bad *expr.CompileError
	if errors.As(err, &bad) && bad.Line > 1 {
		at.Line += bad.Line - 1
	}
	b.Add(&at, "expression: %v", err).Suggestion = b.expressionAdvice(err)
	b.Harmless++
	if bad != nil {
		for _, more := range bad.More {
			b.compileFault(n, more)
		}
	}
}

func (b *Reader) expressionAdvice(err error) string {
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
		known := slices.Concat(ReservedVariables, b.Locals)
		if b.Language != b.Env {
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

// Guard reads a condition: the name of one under guards, {type: name}, or CEL.
func (b *Reader) Guard(n *document.Node) *expr.Program {
	if n.Kind == document.Mapping {
		b.Mapping(n, GuardKeys)
		mapping := n
		if n = n.Field("type"); n == nil {
			if !b.Stored { // it was no fault once
				b.Add(mapping, "a condition is an expression, a name, or {type: name}")
			}
			return nil
		}
		if b.NamedGuards[n.Text] == nil {
			b.Suggest(n, n.Text, KeysOf(b.NamedGuards), "unknown guard %q", data.Shorten(n.Text))
			return nil
		}
	}
	text := b.Text(n)
	if named := b.NamedGuards[text]; named != nil {
		n, text = named, b.Text(named)
	}
	if inner, ok := chart.Expression(text); ok {
		text = inner
	}
	p, err := b.Compile(n, text, b.LanguageHere().CompileBool)
	compiled := b.Compiled(n, p, err)
	if err == nil {
		b.Guards = append(b.Guards, check.PlacedProgram{At: n, Program: p})
	}
	return compiled
}

// ConditionText is a condition as it stands in the file: the name, or the expression without ${ }.
func ConditionText(n *document.Node) string {
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

// Compiled notes an expression, or its fault. What does not compile fails when it runs,
// so that the rest of the chart can be checked as if it did.
func (b *Reader) Compiled(n *document.Node, p *expr.Program, err error) *expr.Program {
	if err != nil {
		if !b.ShapeOnly && !b.IsSCXML() && err != errUncompiled { //nolint:errorlint // it is never wrapped
			b.compileFault(n, err)
		}
		return expr.Failing(err)
	}
	b.Programs = append(b.Programs, check.PlacedProgram{At: n, Program: p})
	b.Definition.Places.Programs[p] = n.Line
	b.Definition.ReadsUser = b.Definition.ReadsUser || p.ReadsBeside("user", "id")
	b.Definition.ReadsEventID = b.Definition.ReadsEventID || p.ReadsBeside("event", "name", "data")
	return p
}

// Template reads a value in which strings may be expressions.
func (b *Reader) Template(n *document.Node) *chart.Template {
	switch n.Kind {
	case document.String:
		if text, ok := chart.Expression(n.Text); ok {
			p, err := b.Compile(n, text, b.LanguageHere().Compile)
			return &chart.Template{Program: b.Compiled(n, p, err)}
		}
		if strings.Contains(n.Text, "${") {
			b.Slips = append(b.Slips, n)
		}
	case document.Mapping:
		t := &chart.Template{Object: true}
		for _, f := range n.Fields {
			t.Keys = append(t.Keys, f.Key.Text)
			t.Values = append(t.Values, b.Template(f.Value))
		}
		return folded(t)
	case document.Sequence:
		t := &chart.Template{}
		for _, item := range n.Items {
			t.Values = append(t.Values, b.Template(item))
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

// Prose reads a text for people, which may have ${…} anywhere.
func (b *Reader) Prose(n *document.Node) *chart.Prose {
	p := &chart.Prose{}
	parts, isExpression := chart.SplitText(b.Text(n))
	for i, part := range parts {
		if !isExpression[i] {
			p.Parts = append(p.Parts, chart.ProsePart{Literal: part})
			continue
		}
		program, err := b.Compile(n, part, b.LanguageHere().Compile)
		if err != nil && b.Stored { // it was no expression when it was accepted
			p.Parts = append(p.Parts, chart.ProsePart{Literal: "${" + part + "}"})
			continue
		}
		if program = b.Compiled(n, program, err); program != nil {
			p.Parts = append(p.Parts, chart.ProsePart{Program: program})
		}
	}
	return p
}
