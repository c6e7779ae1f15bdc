package appendixd

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// TestAvailableForeseesStep: what is listed as sure moves the instance, and what is listed as impossible, or is not listed,
// does not, whatever the data. Its charts have rights, of which the interpreter knows nothing.
func TestAvailableForeseesStep(t *testing.T) {
	p := newParser(t)
	callers := []*statemachine.Caller{{ID: "u"}, {ID: "v"}, {ID: "v", Roles: []string{"r"}}, {ID: "u", Roles: []string{"r"}}}
	counts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		text := (&drawing{t: t, rights: true}).definition()
		parsed, err := p.Parse(statemachine.Source{File: "random.yaml", Text: []byte(text)})
		require.NoError(t, err, text)
		d := parsed.Definition
		r, err := d.Create(statemachine.Creation{ID: "i", Caller: callers[0], Now: begin})
		if errors.Is(err, statemachine.ErrExecution) {
			return
		}
		require.NoError(t, err, text)
		counts["charts"]++
		for n := range 5 {
			in, now := r.Instance, begin.Add(time.Duration(n)*time.Second)
			for _, caller := range callers {
				available := statemachine.View{Instance: &in, Of: d}.Available(caller, now)
				for name := range d.Declared.Exact {
					for _, given := range []string{`{}`, `{"n":1}`, `{"n":2}`} {
						moved, err := d.Step(&in, statemachine.Event{Name: name, Data: data.Value(given), Caller: caller, Now: now})
						verdict := unforeseen(available, name, moved.Outcome, err, counts)
						require.Empty(t, verdict, "step %d, %s with %s by %+v: outcome %d, %v\nin %s\n%+v\n%s", n, name, given, caller, moved.Outcome, err, d.States(&in), available, text)
						if err == nil && moved.Outcome == statemachine.Moved && rapid.IntRange(0, 9).Draw(t, "go on") == 0 {
							r = moved
						}
					}
				}
			}
		}
	})
	t.Logf("%v", counts)
	for _, what := range []string{"charts", "true", "false", "unknown", "unlisted", "unlisted and forbidden"} {
		assert.NotZero(t, counts[what], "no %s: the test tested little", what)
	}
}

func unforeseen(available []statemachine.Available, name statemachine.EventName, outcome statemachine.Outcome, err error, counts map[string]int) string {
	moved := err == nil && outcome == statemachine.Moved
	for _, a := range available {
		if a.Name != name {
			continue
		}
		counts[a.Guard.String()]++
		switch {
		case a.Guard == statemachine.GuardTrue && (err == nil && !moved || errors.Is(err, statemachine.ErrRejected) || errors.Is(err, statemachine.ErrForbidden)):
			return "it was sure"
		case a.Guard == statemachine.GuardFalse && moved:
			return "it was impossible"
		}
		return ""
	}
	counts["unlisted"]++
	if errors.Is(err, statemachine.ErrForbidden) {
		counts["unlisted and forbidden"]++
	}
	if moved {
		return "it was not listed"
	}
	return ""
}
