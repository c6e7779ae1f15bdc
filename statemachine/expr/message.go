package expr

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/operators"
)

func fault(format string, args ...any) *CompileError {
	return &CompileError{Line: 1, Column: 1, Reason: oneLine(fmt.Sprintf(format, args...))}
}

// faultAt is a CompileError about one place.
func faultAt(at common.Location, reason string) *CompileError {
	return &CompileError{Line: max(at.Line(), 1), Column: max(at.Column(), 0) + 1, Reason: oneLine(reason)}
}

// syntaxError begins what the parser says. All but its first are about how it went on.
const syntaxError = "Syntax error"

func allIssues(src string, issues []*cel.Error) *CompileError {
	slices.SortStableFunc(issues, byPlace)
	var first *CompileError
	for _, issue := range issues {
		one := faultAt(issue.Location, plainMessage(issue.Message))
		one.Fields = fieldsAsked(src, one)
		if first == nil {
			first = one
		} else if one.Reason != first.Reason && !strings.HasPrefix(first.Reason, syntaxError) {
			first.More = append(first.More, one)
		}
	}
	return first
}

func firstIssue(issues []*cel.Error) *CompileError {
	first := slices.MinFunc(issues, byPlace)
	return faultAt(first.Location, plainMessage(first.Message))
}

func byPlace(a, b *cel.Error) int {
	return cmp.Or(a.Location.Line()-b.Location.Line(), a.Location.Column()-b.Location.Column())
}

// unknownField is how the checker says that a variable has no such field.
const unknownField = "undefined field "

// lastWord is the name that ends a text.
var lastWord = regexp.MustCompile(`\w+\s*$`)

// fieldsAsked returns the fields of the variable of which err says that it does not have it.
func fieldsAsked(src string, err *CompileError) []string {
	lines := strings.Split(src, "\n")
	if !strings.HasPrefix(err.Reason, unknownField) || err.Line > len(lines) {
		return nil
	}
	line := []rune(lines[err.Line-1])
	name := strings.TrimSpace(lastWord.FindString(string(line[:min(err.Column-1, len(line))])))
	of := map[string]*root{eventRoot: eventType, userRoot: userType, instanceRoot: instanceType, parentRoot: parentType}[name]
	if of == nil {
		return nil
	}
	var names []string
	for _, f := range of.fields {
		names = append(names, f.name)
	}
	return names
}

// endOfText is how the parser says that the expression ends too early.
const endOfText = "mismatched input '<EOF>'"

// What cel-go's messages have in them that means nothing to the author: the empty container, the parser's list of tokens, and the
// internal names of operators.
var (
	container   = regexp.MustCompile(` \(in container '[^']*'\)`)
	expectation = regexp.MustCompile(` expecting (\{.*\}|.*)$`)
	operator    = regexp.MustCompile(`_[^' a-z_]+_|@in|!_|-_`)
)

// plainMessage turns cel-go's wording into that of the author of the expression:
// no overload for '_==_' becomes no overload for '=='.
func plainMessage(s string) string {
	s = container.ReplaceAllString(s, "")
	s = expectation.ReplaceAllString(s, "")
	s = strings.Replace(s, endOfText, "the expression is not complete", 1)
	s = operator.ReplaceAllStringFunc(s, func(internal string) string {
		if name, ok := operators.FindReverse(internal); ok && name != "" {
			return name
		}
		return internal
	})
	return plainType(s)
}

var typeNames = strings.NewReplacer(
	"google.protobuf.Timestamp", "timestamp", "google.protobuf.Duration", "duration",
	eventType.name, "event", userType.name, "user", instanceType.name, "instance", parentType.name, "parent",
	"*values.Object", "map", "*values.Mapping", "map", "*values.List", "list", "*expr.view", "variable",
)

func plainType(s string) string { return typeNames.Replace(s) }
