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
