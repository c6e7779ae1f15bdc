package expr

import (
	"cmp"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func hostile(tb testing.TB) *Scope {
	tb.Helper()
	s := sample(tb)
	s.Public = mustData(tb, `{"s":"`+strings.Repeat("ab", 250_000)+`","one":["`+strings.Repeat("x", 500_000)+`"]}`)
	s.Private = mustData(tb, `{"l":[`+strings.Repeat(`"abc",`, 99_999)+`"x"],"nested":[`+strings.Repeat(`[1],`, 50_000)+`2]}`)
	s.Event.Data = mustData(tb, `{"nums":[`+strings.Repeat("1,", 400_000)+`2],"wide":[`+strings.Repeat("1e300,", 30_000)+`2]}`)
	return s
}

// TestNothingBlowsUp plays testdata/limit: what is refused, what fails, and that nothing allocates much.
func TestNothingBlowsUp(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory and cost")
	}
	e, s := newEnv(t), hostile(t)
	datadriven.RunTest(t, "testdata/limit/limit.txt", func(t *testing.T, d *datadriven.TestData) string {
		got, allocated := measure(e, expand(d.Input), s)
		assert.LessOrEqual(t, allocated, uint64(200<<20), "%s: allocated %d MiB", d.Pos, allocated>>20)
		return cmp.Or(got, "fine")
	})
}

func measure(e *Env, src string, s *Scope) (string, uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := e.Compile(src)
	if err == nil {
		_, err = p.Value(s)
	}
	runtime.ReadMemStats(&after)
	if err == nil {
		return "", after.TotalAlloc - before.TotalAlloc
	}
	return err.Error(), after.TotalAlloc - before.TotalAlloc
}

func TestALimitIsNoErrorThatOrAbsorbs(t *testing.T) {
	e, s := newEnv(t), hostile(t)
	p, err := e.Compile(`svcPublic.s.replace("a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") == "" || true`)
	require.NoError(t, err)
	v, err := p.Bool(s)
	assert.True(t, errors.Is(err, ErrLimit) && errors.Is(err, ErrEval) && !v, "got %v, %v, want ErrLimit", v, err)
}

func TestABudgetBoundsWhatEvaluationsCostTogether(t *testing.T) {
	e := newEnv(t)
	many := mustData(t, `{"l":[`+strings.Repeat("1,", 999)+`1],"text":"`+strings.Repeat("a", 1<<20)+`"}`)
	few := mustData(t, `{"l":[1],"text":"a"}`)
	for _, c := range []struct {
		sentence, src string
		least, most   uint64 // what one evaluation on many costs
	}{
		{"a plain path", `svcPublic.text`, 1 << 20 / readPerUnit, 1<<20/readPerUnit + 100},
		{"nothing of the data", `1 + 1 == 2`, evaluationCost, 100},
		{"a loop", `svcPublic.l.exists(x, x == 2)`, 3000 + 1<<20/readPerUnit, 50_000},
		{"a search in a long text, cheap by its estimate", `svcPublic.text.contains("b")`, 20_000, 50_000},
		{"a written result", `svcPublic.text + "b"`, 1 << 20 / writtenPerUnit, 500_000},
		{"an error", `svcPublic.l.exists(x, x.y == 2)`, 3000, 50_000},
	} {
		p, err := e.Compile(c.src)
		require.NoError(t, err)
		cost := func() uint64 {
			const most = 1 << 30
			b := NewBudget(most)
			s := &Scope{Public: many, Budget: &b}
			_, first := p.Value(s)
			once := most - b.left
			_, second := p.Value(s)
			assert.True(t, (first == nil) == (second == nil) && most-b.left == 2*once, "%v %v %v", c.sentence, most-b.left-once, once)
			return once
		}
		got := cost()
		assert.True(t, got >= c.least && got <= c.most, "%s: cost %d, want %d to %d", c.sentence, got, c.least, c.most)
		b := NewBudget(got - 1)
		s := &Scope{Public: many, Budget: &b}
		_, first := p.Value(s)
		if errors.Is(first, ErrLimit) || !b.Exhausted() {
			t.Errorf("%s: got %v, exhausted %v, want the evaluation that goes beyond to be the last", c.sentence, first, b.Exhausted())
		}
		s.Public = few
		_, err = p.Value(s)
		assert.True(t, errors.Is(err, ErrLimit) && errors.Is(err, ErrEval), "%s: value: got %v, want ErrLimit", c.sentence, err)
		_, err = p.Bool(s)
		assert.ErrorIs(t, err, ErrLimit, "%s: bool", c.sentence)
	}
}
