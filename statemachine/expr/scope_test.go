package expr

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

func TestAConditionThatIsNoBoolFails(t *testing.T) {
	p, err := newEnv(t).CompileBool(`svcPublic.amount`)
	require.NoError(t, err)
	ok, err := p.Bool(sample(t))
	want := "expression failed: the result is not a bool but int"
	assert.True(t, !ok && errors.Is(err, ErrEval) && err.Error() == want, "got %v, %v, want false, %s", ok, err, want)
}

// TestAPanicBecomesAnError has the only code of others that an evaluation calls: the functions in the Scope.
func TestAPanicBecomesAnError(t *testing.T) {
	e := newEnv(t)
	s := sample(t)
	s.In = func(string) bool { panic("in") }
	s.Instance.States = func() data.Value { panic("states") }
	for _, src := range []string{`In("x")`, `instance.states == []`, `[instance] == []`} {
		p, err := e.Compile(src)
		require.NoError(t, err)
		_, err = p.Bool(s)
		assert.True(t, errors.Is(err, ErrEval) && strings.Contains(err.Error(), "internal error"), "%s: Bool: got %v, want an internal error", src, err)
		_, err = p.Value(s)
		assert.ErrorIs(t, err, ErrEval, "%s: Value", src)
	}
	assert.Equal(t, "internal error: states", outcome(t, e, `instance`, s), "a variable taken whole")
	assert.Equal(t, `"bob"`, outcome(t, e, `user.id`, s), "afterwards")
}

// TestTheSameScopeGivesTheSameBytes runs what cel-go would answer in the order of a Go map.
func TestTheSameScopeGivesTheSameBytes(t *testing.T) {
	e, s := newEnv(t), sample(t)
	const letters = `{"f": 1, "b": svcPublic.rate, "q": 3, "a": [user], "zz": event, "e": {"y": 1, "x": 2, "w": now}}`
	for _, src := range []string{
		letters,
		letters + `.map(k, k)`,
		letters + `.filter(k, k != "b")`,
		`cel.bind(m, ` + letters + `, m.map(k, m[k]))`,
		`{1: "a", true: "b", "x": "c", 2: "d", "w": "e", false: "f"}.map(k, string(k))`,
		`"%s".format([{"f": 1, "b": 2, "q": 3}])`,
		letters + `.map(k, {"k": k})`,
		`{"f": 1, "b": 2, "q": 3}[svcPublic.address]`, // an error
		`svcPublic.map(k, k)`,
	} {
		p, err := e.Compile(src)
		require.NoError(t, err, src)
		first := ""
		for range 50 {
			v, err := p.Value(s)
			got := fmt.Sprintf("%s %v", v, err)
			if first == "" {
				first = got
			}
			if !assert.Equal(t, first, got, src) {
				break
			}
		}
	}
}

// TestCelAloneWouldNotGiveTheSameBytes is the control: without this package's plan, the order is that of a Go map.
func TestCelAloneWouldNotGiveTheSameBytes(t *testing.T) {
	e := newEnv(t)
	checked, issues := e.check(`{"f": 1, "b": user.id, "q": 3, "a": 4, "zz": 5, "e": 6}.map(k, k)`)
	require.NoError(t, issues.Err())
	program, err := e.cel.Program(checked)
	require.NoError(t, err)
	p, seen := &Program{program: program}, map[string]bool{}
	for range 200 {
		v, err := p.Value(sample(t))
		require.NoError(t, err)
		seen[string(v)] = true
	}
	assert.GreaterOrEqual(t, len(seen), 2, "cel-go has an order now: this package's own may not be needed any more")
}

func TestProgramsAreSharedAndScopesReused(t *testing.T) {
	e := newEnv(t)
	withItem, err := e.With("item")
	require.NoError(t, err)
	_, err = e.Compile("item")
	require.Error(t, err, "a name of another environment")
	p, err := withItem.Compile(`[item, svcPublic.n, event.data.n, user.id, instance.states[0], svcPublic.l.map(x, x + item)]`)
	require.NoError(t, err)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			s := &Scope{Event: &Event{}, Locals: map[string]data.Value{}}
			for i := range 200 {
				n := fmt.Sprint(worker*1000 + i)
				s.Public = data.Value(`{"n":` + n + `,"l":[1,2]}`)
				s.Event.Data = data.Value(`{"n":` + n + `}`)
				s.User.ID = n
				s.Instance.States = func() data.Value { return data.Value("[" + n + "]") }
				s.Locals["item"] = data.Value(n)
				want := fmt.Sprintf(`[%s,%[1]s,%[1]s,"%[1]s",%[1]s,[%d,%d]]`, n, worker*1000+i+1, worker*1000+i+2)
				got, err := p.Value(s)
				if !assert.True(t, string(got) == want && err == nil, "got %s, %v, want %s", got, err, want) {
					return
				}
			}
		})
	}
	group.Go(func() {
		for i := range 20 {
			_, err := e.Compile(fmt.Sprintf(`svcPublic.n + %d`, i))
			assert.NoError(t, err)
			_, err = e.With(fmt.Sprintf("v%d", i))
			assert.NoError(t, err)
		}
	})
	group.Wait()
}
