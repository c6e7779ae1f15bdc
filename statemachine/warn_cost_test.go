package statemachine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/cputest"
)

func parseWithin(t *testing.T, text string, most time.Duration) *Parsed {
	t.Helper()
	took := cputest.Watch()
	p, err := parseAs(t, text, ParserOptions{})
	assert.LessOrEqual(t, took(), most, "it took")
	require.NoError(t, err)
	return p
}

// TestTheSearchForCirclesEnds: each of the regions sends what all of them take, and enters all of them.
func TestTheSearchForCirclesEnds(t *testing.T) {
	var b strings.Builder
	b.WriteString("id: a\nstateMachines: {m: {states: {\n p: {type: parallel, on: {out: b}, states: {\n")
	for i := range 700 {
		fmt.Fprintf(&b, "  r%d: {states: {a%[1]d: {entry: [{send: {event: go}}], on: {go: p}}}},\n", i)
	}
	b.WriteString(" }}, b: {type: final}}}}\n")
	p := parseWithin(t, b.String(), 10*time.Second) // without a bound it is minutes
	assert.Contains(t, p.Warnings.Error(), "a circle of steps", "got %.200v", p.Warnings)
}

// TestNamesAreComparedWhileTheyAreFew: each of thousands of reads would be held against each of thousands of names.
func TestNamesAreComparedWhileTheyAreFew(t *testing.T) {
	var b strings.Builder
	b.WriteString("id: a\ncontext: {svcPublic: {")
	for i := range 20_000 {
		fmt.Fprintf(&b, "abcdefghijk%dx: 1, ", i)
	}
	b.WriteString("x: 1}}\nstateMachines: {m: {states: {p: {entry: [\n")
	for i := range 2_000 {
		fmt.Fprintf(&b, "{assign: {svcPublic.x: '${svcPublic.zbcdzfghzjk%d}'}},\n", i)
	}
	b.WriteString("], on: {out: b}}, b: {type: final}}}}\n")
	parseWithin(t, b.String(), 20*time.Second) // without a bound it is a minute
}
