package statemachine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/document"
)

// manyGuards is a definition with n conditions of the form that text has, with the number in place of N.
func manyGuards(n int, text string) string {
	var b strings.Builder
	b.WriteString("id: a\nstateMachines:\n  m:\n    states:\n      a:\n        on:\n")
	for i := range n {
		fmt.Fprintf(&b, "          e%d: {guard: '%s', target: b}\n", i, strings.ReplaceAll(text, "N", fmt.Sprint(i)))
	}
	return b.String() + "      b: {type: final}\n"
}

// manySchemas is a definition with n events that have a schema each.
func manySchemas(n int, schema string) string {
	var b strings.Builder
	b.WriteString("id: a\nstateMachines: {m: {states: {a: {on: {go: b}}, b: {type: final}}}}\nevents:\n  go: {}\n")
	for i := range n {
		fmt.Fprintf(&b, "  e%d: {data: %s}\n", i, strings.ReplaceAll(schema, "N", fmt.Sprint(i)))
	}
	return b.String()
}

func TestWhatAFileTakesToCompileIsBounded(t *testing.T) {
	long := "[" + strings.Repeat("1, ", 3000) + "N] == svcPublic.x"
	for _, c := range []struct {
		name          string
		few, many     string
		want          string
		line          int
		storedRefused bool
	}{
		{"expressions", manyGuards(20, long), manyGuards(30, long), "the bytes of its expressions come to more than 250000", 34, false},
		{
			"patterns in expressions", manyGuards(5, `user.id.matches("(N|bc){0,200}")`), manyGuards(50, `user.id.matches("(N|bc){0,200}")`),
			"the instructions of its regular expressions come to more than 20000", 19, true,
		},
		{
			"patterns in schemas", manySchemas(8, "{pattern: '(N|bc){0,200}'}"), manySchemas(50, "{pattern: '(N|bc){0,200}'}"),
			"the instructions of its regular expressions come to more than 20000", 17, true,
		},
		{
			"large schemas", manySchemas(9, "{anyOf: ["+strings.Repeat("{}, ", 2000)+"{const: N}]}"), manySchemas(40, "{anyOf: ["+strings.Repeat("{}, ", 1000)+"{const: N}]}"),
			"the mappings and lists in its schemas come to more than 30000", 34, false,
		},
	} {
		if _, err := parseAs(t, c.few, ParserOptions{}); err != nil {
			t.Errorf("%s: few: got %.300v", c.name, err)
		}
		_, err := parseAs(t, c.many, ParserOptions{})
		var faults document.Faults
		assert.True(t, errors.As(err, &faults) && len(faults) == 1 && strings.Contains(faults[0].Reason, c.want) && faults[0].Line == c.line,
			"%s: got %.300v, want one fault in line %d: %s", c.name, err, c.line, c.want)
		_, err = parseAs(t, c.many, ParserOptions{Stored: true})
		assert.Equal(t, c.storedRefused, err != nil, "%s: stored: got %.300v", c.name, err)
	}
}

// TestAParserStopsWhenNobodyWaits counts how often the parser asks, so that it is known that it stops between two expressions.
func TestAParserStopsWhenNobodyWaits(t *testing.T) {
	gone := errors.New("the caller is gone")
	for _, text := range []string{manyGuards(20, "svcPublic.a == N"), manySchemas(20, "{type: object}")} {
		asked := 0
		ended := func() error {
			if asked++; asked > 5 {
				return gone
			}
			return nil
		}
		_, err := newParser(t).Until(ended).With(ParserOptions{}).Parse(Source{File: "a.yaml", Text: []byte(text)})
		assert.True(t, errors.Is(err, gone) && asked == 6, "got %v after it was asked %d times, want the reason after 6", err, asked)
	}
}

// TestAParserStopsAmidYAML: a long text has no expression before its end.
func TestAParserStopsAmidYAML(t *testing.T) {
	gone, asked := errors.New("the caller is gone"), 0
	ended := func() error {
		if asked++; asked > 3 {
			return gone
		}
		return nil
	}
	text := "id: long\n" + strings.Repeat("# a remark\n", 10_000)
	_, err := newParser(t).Until(ended).Parse(Source{File: "a.yaml", Text: []byte(text)})
	assert.True(t, errors.Is(err, gone) && asked <= 5, "got %v after it was asked %d times, want the reason after 4", err, asked)
}
