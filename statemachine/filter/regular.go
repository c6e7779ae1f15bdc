package filter

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"troupe/statemachine/data"
	regexcost "troupe/statemachine/internal/pattern"
)

// Limits of regular expressions (statemachine/filter/FILTER.md, "Limits"). RE2 takes time linear in the text, but for each
// character as many steps as the expression has: "(a{99}){9}" is short and has 900.
const (
	maxPattern = 1 << 10
	maxSteps   = 1100 // of all expressions of a filter together
	// maxReading is how long they may take to be read, together, in units of 50 ns: "[B-𞥂]" is short and takes 4 ms with the option i.
	maxReading = 500_000
)

func (p *parser) regularExpression(operand, options data.Value) (predicate, error) {
	if operand.Kind() != data.String {
		return predicate{}, malformed("$regex", "takes a text")
	}
	pattern := operand.Text()
	if len(pattern) > maxPattern {
		return predicate{}, fmt.Errorf("%w: $regex of %d bytes, at most %d are allowed", ErrTooLarge, len(pattern), maxPattern)
	}
	flags, err := parseFlags(options)
	if err != nil {
		return predicate{}, err
	}
	if p.reading += regexcost.Reading(flags + pattern); p.reading > maxReading {
		return predicate{}, fmt.Errorf("%w: $regex takes too long to read: it has many classes by name, or with i long ranges", ErrTooLarge)
	}
	tree, err := syntax.Parse(flags+pattern, syntax.Perl)
	if err != nil {
		return predicate{}, malformed("$regex", patternFault(err))
	}
	steps := stepsOf(tree)
	if p.steps += steps; p.steps > maxSteps {
		return predicate{}, fmt.Errorf("%w: $regex of too many steps: the filter's expressions may have %d, repetitions multiplied", ErrTooLarge, maxSteps)
	}
	regular, err := regexp.Compile(flags + pattern)
	if err != nil {
		return predicate{}, malformed("$regex", patternFault(err))
	}
	return predicate{op: opRegular, regular: regular, prefix: prefixOf(tree), steps: steps}, nil
}

func patternFault(err error) string {
	if fault := (*syntax.Error)(nil); errors.As(err, &fault) {
		return fmt.Sprintf("is not an RE2 expression: %s: %s", fault.Code, data.Quote(fault.Expr))
	}
	return "is not an RE2 expression"
}

// parseFlags returns $options as the beginning of an expression.
func parseFlags(options data.Value) (string, error) {
	if len(options) == 0 {
		return "", nil
	}
	if options.Kind() != data.String {
		return "", malformed("$options", "takes a text")
	}
	text := options.Text()
	for _, flag := range text {
		if flag != 'i' && flag != 'm' && flag != 's' {
			return "", malformed("$options", "takes i, m and s, and not "+data.Quote(string(flag)))
		}
	}
	if text == "" {
		return "", nil
	}
	return "(?" + text + ")", nil
}

// stepsOf counts what the expression is compiled to, roughly.
func stepsOf(r *syntax.Regexp) int {
	inside := 0
	for _, sub := range r.Sub {
		inside += stepsOf(sub)
	}
	switch r.Op {
	case syntax.OpLiteral:
		return len(r.Rune)
	case syntax.OpRepeat:
		inside = inside*max(r.Max, r.Min+1) + max(r.Max-r.Min, 0)
	}
	// NB: repetitions in each other stay below 1000 times, which Parse sees to.
	return inside + 1
}

// prefixOf returns what every text begins with that the expression finds: of "^abc.*" it is abc. "" tells nothing.
func prefixOf(r *syntax.Regexp) string {
	if r.Op != syntax.OpConcat || len(r.Sub) < 2 || r.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	if first := r.Sub[1]; first.Op == syntax.OpLiteral && first.Flags&syntax.FoldCase == 0 {
		return string(first.Rune)
	}
	return ""
}
