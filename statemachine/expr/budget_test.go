package expr

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
