package comparison_test

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"troupe/statemachine"
	"troupe/statemachine/appendixd"
	"troupe/statemachine/appendixd/comparison"
)

func newParser(t *testing.T, o statemachine.ParserOptions) *statemachine.Parser {
	t.Helper()
	p, err := statemachine.NewParser(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// least is how often a run of 100 cases must meet each feature: about a tenth of what it does meet, so that a change of the
// generator that loses one is seen. Every feature must have a line.
var least = map[appendixd.Feature]int{
	appendixd.EventlessTransition: 200, appendixd.InternalTransition: 500, appendixd.ReenteredSource: 200, appendixd.TargetlessTransition: 500,
	appendixd.SeveralTargets: 100, appendixd.Preemption: 300, appendixd.ConflictOfStaying: 10, appendixd.ShallowRestored: 50, appendixd.DeepRestored: 50,
	appendixd.DefaultHistory: 30, appendixd.DoneEvent: 300, appendixd.DoneParallel: 2, appendixd.DoneInstance: 10, appendixd.RaisedEvent: 300,
	appendixd.RaiseChain: 50, appendixd.FailedGuard: 3, appendixd.ExecutionError: 300, appendixd.UndoneStep: 20, appendixd.BoundReached: 1,
	appendixd.FiredTimer: 300, appendixd.LateTimer: 50, appendixd.EndedTimer: 500, appendixd.CancelledTimer: 20, appendixd.RecordedEvent: 100,
	appendixd.IgnoredEvent: 30, appendixd.RejectedEvent: 20,
}

var (
	steps     = flag.Int("steps", 0, "how many steps both take at least, besides 100 cases")
	firstSeed = flag.Int("first-seed", 0, "the seed of the first case")
)

// TestCoreFollowsAppendixD: after every step of random charts and events, package statemachine is where the interpreter of
// Appendix D is, and has done the same in the same order.
func TestCoreFollowsAppendixD(t *testing.T) {
	cases := 100
	if testing.Short() {
		cases = 20
	}
	p := newParser(t, statemachine.ParserOptions{})
	var tally comparison.Tally
	g := comparison.Cases()
	count := 0
	for ; count < cases || tally.Steps < *steps; count++ {
		seed := *firstSeed + count
		c := g.Example(seed)
		one, err := comparison.Run(p, c)
		tally.Add(one)
		if errors.Is(err, comparison.ErrRefused) {
			if *steps == 0 {
				t.Logf("seed %d: %v", seed, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, comparison.Smallest(c, err))
		}
	}
	t.Logf("%d steps of %d charts; %d charts refused", tally.Steps, tally.Charts, tally.Refused)
	if tally.Refused > count/20 {
		t.Errorf("%d of %d charts were refused: the generator makes too many with faults", tally.Refused, count)
	}
	if tally.NotStarted > count/3 {
		t.Errorf("%d of %d charts cannot be started", tally.NotStarted, count)
	}
	for f, n := range tally.Counts {
		if *steps > 0 {
			t.Logf("met %d times: %v", n, appendixd.Feature(f))
		}
		least, known := least[appendixd.Feature(f)]
		if !known {
			t.Errorf("%v: nothing says how often they must be met", appendixd.Feature(f))
		}
		if !testing.Short() && n < least {
			t.Errorf("%v: met %d times, want %d", appendixd.Feature(f), n, least)
		}
	}
}

// TestComparisonControl plants each mistake into the interpreter: the comparison must find it.
func TestComparisonControl(t *testing.T) {
	if testing.Short() {
		t.Skip("it looks for planted mistakes")
	}
	p := newParser(t, statemachine.ParserOptions{})
	g := comparison.Cases()
	for _, mistake := range appendixd.Mistakes() {
		t.Run(mistake.String(), func(t *testing.T) {
			for seed := range 200 {
				c := g.Example(seed)
				c.Chart.Mistake = mistake
				if _, err := comparison.Run(p, c); isDifference(err) {
					t.Logf("found with case %d", seed)
					return
				}
			}
			t.Error("200 cases did not find it")
		})
	}
}

func isDifference(err error) bool {
	var difference *comparison.Difference
	return errors.As(err, &difference)
}

// TestReduceKeepsTheDifference: a reduced case still has a difference of the same kind, and is smaller.
func TestReduceKeepsTheDifference(t *testing.T) {
	p := newParser(t, statemachine.ParserOptions{Stored: true})
	g := comparison.Cases()
	for seed := range 50 {
		c := g.Example(seed)
		c.Chart.Mistake = appendixd.ExitsOuterFirst
		_, err := comparison.Run(p, c)
		if !isDifference(err) {
			continue
		}
		before := len(comparison.Definition(c.Chart))
		_, reduced := comparison.Run(p, comparison.Reduce(p, c))
		if !isDifference(reduced) || !strings.HasPrefix(reduced.Error(), "log:") {
			t.Fatalf("reduced to %v", reduced)
		}
		if after := len(comparison.Definition(c.Chart)); after > before/2 {
			t.Errorf("reduced from %d to %d bytes", before, after)
		}
		return
	}
	t.Error("no case found a mistake in the order of exits")
}
