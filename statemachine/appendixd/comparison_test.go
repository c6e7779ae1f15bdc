package appendixd

import (
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine"
)

// TestMain fixes the number of cases above that in which each mistake is found; -rapid.checks gives another. The seed is fixed too,
// so that each run meets the same features.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", fmt.Sprint(cases)); err != nil {
		panic(err)
	}
	m.Run()
}

const cases = 50

// newParser reads definitions as stored ones, whose charts may have states that nothing leads to: most random charts do.
func newParser(t *testing.T) *statemachine.Parser {
	t.Helper()
	p, err := statemachine.NewParser(statemachine.ParserOptions{Stored: true})
	require.NoError(t, err)
	return p
}

// least is how often a run of so many cases must meet each feature: about a tenth of what it does meet, so that a change of the
// generator that loses one is seen. Every feature must have a line.
var least = map[string]int{
	"eventless transitions": 200, "transitions inside their source": 500, "transitions with reenter": 200, "transitions without target": 500,
	"transitions with several targets": 100, "preempted transitions": 300, "preempted because one stays in its source": 10, "shallow histories restored": 50, "deep histories restored": 50,
	"defaults of histories taken": 30, "done events": 300, "done events of parallel states": 2, "steps that end in a done instance": 10, "raised events": 300,
	"steps with a chain of internal events": 50, "guards that fail": 3, "execution errors": 300, "undone steps": 20, "undone steps at a bound of one event": 1,
	"timers fired": 300, "timers fired later than due": 50, "timers ended with their state": 500, "timers cancelled by id": 20, "unmatched events recorded": 100,
	"unmatched events ignored": 30, "unmatched events rejected": 20,
}

// TestCoreFollowsAppendixD: after every step of random charts and events, package statemachine is where the interpreter of
// Appendix D is, and has done the same in the same order.
func TestCoreFollowsAppendixD(t *testing.T) {
	p := newParser(t)
	tally := Tally{Counts: map[string]int{}}
	rapid.Check(t, func(t *rapid.T) {
		err := Run(p, drawCase(t), &tally)
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
		t.Logf("met %d times: %s", n, f)
		assert.Contains(t, least, f, "nothing says how often they must be met")
	}
	for f, want := range least {
		assert.True(t, testing.Short() || tally.Counts[f] >= want, "%s: met %d times, want %d", f, tally.Counts[f], want)
	}
}

// mistakes are faults that the interpreter makes on purpose, so that the comparison shows that it would find them.
var mistakes = []string{
	"keeps conflicting transitions", "searches outer states first", "ignores guards", "takes names for prefixes", "takes transitions for external ones",
	"leaves outer states first", "enters inner states first", "leaves regions out", "records no history", "takes deep history for shallow one",
	"never sees that a parallel state is done", "takes the last raised event first", "keeps half a step", "fires timers in the order of their begin",
	"lets timers outlive their states", "cancels nothing",
}

// TestComparisonControl plants each mistake into the interpreter: the comparison must find it.
func TestComparisonControl(t *testing.T) {
	if testing.Short() {
		t.Skip("it looks for planted mistakes")
	}
	p := newParser(t)
	drawn := rapid.Custom(drawCase)
	for _, mistake := range mistakes {
		t.Run(mistake, func(t *testing.T) {
			for seed := range cases {
				c := drawn.Example(seed)
				c.Mistake = mistake
				if err := Run(p, c, &Tally{Counts: map[string]int{}}); err != nil && !errors.Is(err, ErrRefused) {
					t.Logf("found with case %d", seed)
					return
				}
			}
			t.Errorf("%d cases did not find it", cases)
		})
	}
}
