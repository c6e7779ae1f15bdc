package appendixd

import (
	"errors"
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine"
)

// TestMain fixes the seed, so that each run meets the same features; -rapid.seed gives another one.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	m.Run()
}

// newParser reads definitions as stored ones, whose charts may have states that nothing leads to: most random charts do.
func newParser(t *testing.T) *statemachine.Parser {
	t.Helper()
	p, err := statemachine.NewParser(statemachine.ParserOptions{Stored: true})
	require.NoError(t, err)
	return p
}

// least is how often a run of 100 cases must meet each feature: about a tenth of what it does meet, so that a change of the
// generator that loses one is seen. Every feature must have a line.
var least = map[Feature]int{
	EventlessTransition: 200, InternalTransition: 500, ReenteredSource: 200, TargetlessTransition: 500,
	SeveralTargets: 100, Preemption: 300, ConflictOfStaying: 10, ShallowRestored: 50, DeepRestored: 50,
	DefaultHistory: 30, DoneEvent: 300, DoneParallel: 2, DoneInstance: 10, RaisedEvent: 300,
	RaiseChain: 50, FailedGuard: 3, ExecutionError: 300, UndoneStep: 20, BoundReached: 1,
	FiredTimer: 300, LateTimer: 50, EndedTimer: 500, CancelledTimer: 20, RecordedEvent: 100,
	IgnoredEvent: 30, RejectedEvent: 20,
}

// TestCoreFollowsAppendixD: after every step of random charts and events, package statemachine is where the interpreter of
// Appendix D is, and has done the same in the same order.
func TestCoreFollowsAppendixD(t *testing.T) {
	p := newParser(t)
	var tally Tally
	rapid.Check(t, func(t *rapid.T) {
		one, err := Run(p, drawCase(t))
		tally.Add(one)
		if errors.Is(err, ErrRefused) {
			t.Log(err)
		} else if err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%d steps of %d charts; %d charts refused", tally.Steps, tally.Charts, tally.Refused)
	count := tally.Charts + tally.Refused
	assert.LessOrEqual(t, tally.Refused, count/20, "of %d charts were refused: the generator makes too many with faults", count)
	assert.LessOrEqual(t, tally.NotStarted, count/3, "of %d charts cannot be started", count)
	for f, n := range tally.Counts {
		t.Logf("met %d times: %v", n, Feature(f))
		least, known := least[Feature(f)]
		assert.True(t, known, "%v: nothing says how often they must be met", Feature(f))
		assert.False(t, !testing.Short() && n < least, "%v: met %d times, want %d", Feature(f), n, least)
	}
}

// TestComparisonControl plants each mistake into the interpreter: the comparison must find it.
func TestComparisonControl(t *testing.T) {
	if testing.Short() {
		t.Skip("it looks for planted mistakes")
	}
	p := newParser(t)
	cases := rapid.Custom(drawCase)
	for _, mistake := range Mistakes() {
		t.Run(mistake.String(), func(t *testing.T) {
			for seed := range 200 {
				c := cases.Example(seed)
				c.Chart.Mistake = mistake
				var difference *Difference
				if _, err := Run(p, c); errors.As(err, &difference) {
					t.Logf("found with case %d", seed)
					return
				}
			}
			t.Error("200 cases did not find it")
		})
	}
}
