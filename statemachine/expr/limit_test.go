package expr

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hostile is a scope with large data, as a caller may send it.
func hostile(tb testing.TB) *Scope {
	tb.Helper()
	s := sample(tb)
	s.Public = mustData(tb, `{"s":"`+strings.Repeat("ab", 250_000)+`","one":["`+strings.Repeat("x", 500_000)+`"]}`)
	s.Private = mustData(tb, `{"l":[`+strings.Repeat(`"abc",`, 99_999)+`"x"],"nested":[`+strings.Repeat(`[1],`, 50_000)+`2]}`)
	s.Event.Data = mustData(tb, `{"nums":[`+strings.Repeat("1,", 400_000)+`2],"wide":[`+strings.Repeat("1e300,", 30_000)+`2]}`)
	return s
}

// TestNothingBlowsUp has an expression for each function whose result or whose
// work is not bounded by what cel-go charges for it in advance.
func TestNothingBlowsUp(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory and cost")
	}
	e, s := newEnv(t), hostile(t)
	const (
		large   = "limit exceeded: a value would be larger than 4 MiB"
		costly  = "limit exceeded: the evaluation costs too much on this data"
		refused = "too expensive"
		fine    = ""
	)
	for _, c := range []struct{ sentence, src, want string }{
		{"lists.range of a huge literal", `lists.range(1000000000)`, "exceeds maximum allowed (10000)"},
		{"lists.range of a huge number", `lists.range(size(event.data.nums) * 1000000)`, "exceeds maximum allowed (10000)"},
		{"lists.range that fits", `lists.range(10000).size()`, fine},
		{"replace of every gap", `svcPublic.s.replace("", svcPublic.s.substring(0, 100000)).size()`, refused},
		{"replace of every character", `svcPublic.s.replace("a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").size()`, large},
		{"replace with a limit", `svcPublic.s.replace("a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 10).size()`, fine},
		{"join with a long separator", `svcPrivate.l.join("--------------------------------------------").size()`, large},
		{"join of one long text", `svcPublic.one.join().size()`, fine},
		{"format of too much", `"%s".format([svcPublic.s])`, "limit exceeded: too much to format"},
		{"format of numbers that print long", `"%s".format([event.data.wide]).size()`, costly},
		{"format of numbers with many places", `"%.100f".format([1.0]).size() + "%.1000000f".format([1.0]).size()`, "exceeds maximum allowed precision 100"},
		{"format of a precision from the data", `("%." + string(instance.version) + "000000f").format([1.0])`, "precision"},
		{"quote of quotes", `strings.quote(strings.quote(strings.quote(svcPublic.s))).size()`, fine},
		{"quote of backslashes", doublings(5, "strings.quote(strings.quote(strings.quote(svcPublic.s + svcPublic.s)))") + ".size()", costly},
		{"a text added to itself", doublings(7, "svcPublic.s + svcPublic.s") + ".size()", large},
		{"a list added to itself", doublings(7, "svcPrivate.l + svcPrivate.l") + ".size()", large},
		{"bytes added to themselves", doublings(7, "bytes(svcPublic.s)") + ".size()", large},
		{"a list of lists of lists", `[svcPrivate.l].map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x])`, large},
		{"a map of maps of maps", `cel.bind(a, {"x": svcPrivate.l, "y": svcPrivate.l}, cel.bind(b, {"x": a, "y": a}, {"x": b, "y": b}))`, large},
		{"a map of the event again and again", `cel.bind(a, [event, event, event], cel.bind(b, [a, a, a], [b, b]))`, large},
		{"flatten of a shared list", `[svcPrivate.l].map(x, [x,x]).map(x, [x,x]).flatten(9).size()`, refused},
		{"flatten of the data", `svcPrivate.nested.flatten().size()`, fine},
		{"a loop that makes texts", `svcPrivate.l.map(x, svcPublic.s + x).size()`, costly},
		{"a loop that makes texts of the data's own operands", `event.data.nums.map(x, svcPublic.s + svcPublic.s).size()`, costly},
		{"a loop over more than expected", `event.data.nums.map(x, x * 2).size()`, costly},
		{"a loop that reads a large text", `lists.range(3000).all(i, svcPublic.s != "")`, fine},
		{"a loop that reads a long list", `lists.range(3000).all(i, svcPrivate.l[i + 90000] == "abc")`, fine},
		{"a loop over a loop over one long text", `svcPrivate.l.slice(0, 500).all(i, svcPublic.one.all(x, x != i))`, refused},
		{"a loop over a list of one long text", `lists.range(3000).all(i, svcPublic.one[0] != "")`, fine},
		{"a loop that compares large values", `lists.range(9000).exists(i, svcPrivate.l == event.data.nums)`, costly},
		{"a loop that compares with or absorbs its failure", `lists.range(9000).exists(i, [svcPrivate.l, svcPublic] == [svcPrivate.l, event.data])`, costly},
		{"a loop that searches a long list", `event.data.nums.exists(i, i in svcPrivate.l)`, costly},
		{"indexOf in a text of one pattern", `svcPublic.s.indexOf(svcPublic.s.substring(1) + "c")`, fine},
		{"lastIndexOf in a text of one pattern", `svcPublic.s.lastIndexOf("c" + svcPublic.s.substring(1))`, fine},
		{"contains with a long text", `svcPublic.s.contains(svcPublic.s + "c")`, costly},
		{"distinct of many texts", `svcPrivate.l.distinct()`, fine},
		{"distinct of many lists", `svcPrivate.nested.distinct().size()`, fine},
		{"distinct of many different lists", `lists.range(10000).map(i, [i]).distinct().size()`, "too many lists or maps"},
		{"sum of many numbers", `event.data.nums.sum() + event.data.wide.sum()`, fine},
		{"a loop of sums", `lists.range(1000).all(i, event.data.nums.sum() > 1)`, refused},
		{"a loop of sums over more than expected", `svcPrivate.nested.exists(l, event.data.wide.sum() < 0.0)`, refused},
		{"sums in a loop", `svcPrivate.l.slice(0, 100).all(x, sum([1.5, 1e300, 1e-300]) > 1)`, fine},
		{"sort of many texts", `svcPrivate.l.sort()[0]`, fine},
		{"sets of many texts", `sets.equivalent(svcPrivate.l, svcPrivate.l)`, fine},
		{"hasAny of many texts", `svcPrivate.l.hasAny(svcPrivate.l)`, fine},
		{"sets of many lists", `sets.contains(svcPrivate.nested, svcPrivate.nested)`, "too many lists or maps"},
		{"split into characters", `svcPublic.s.split("").size()`, fine},
		{"case, reverse and trim", `svcPublic.s.upperAscii().lowerAscii().reverse().trim().size()`, costly},
		{"a pattern that is a large text", `user.id.matches(svcPublic.s)`, "the pattern has more than 256 bytes"},
		{"a pattern that counts far", `user.id.matches("(a|b){0,900" + "}")`, "the limit is 2000"},
		{"a pattern from the data that takes long to read", `user.id.matches("(?i)" + "[B-\U0001E943]")`, fine},
		{"many patterns from the data that take long to read", `lists.range(100).all(i, user.id.matches("(?i)" + "[B-\U0001E943]"))`, costly},
		{"a large pattern and a long text", `svcPublic.s.matches("[a-z]{900}0")`, "a match of a text of"},
		{"a small pattern and a long text", `svcPublic.s.matches("^[a-z]+0")`, fine},
		{"many matches of a large pattern", `lists.range(1000).exists(i, svcPublic.s.substring(0, 100).matches("[a-z]{900}0"))`, costly},
		{"a bad pattern", `user.id.matches("(" + user.id)`, "bad pattern"},
	} {
		got, allocated := measure(e, c.src, s)
		assert.True(t, (c.want != fine || got == "") && strings.Contains(got, c.want), "%s: %.100s\n got %q\nwant %q", c.sentence, c.src, got, c.want)
		assert.LessOrEqual(t, allocated, uint64(200<<20), "%s: %.100s\n allocated %d MiB", c.sentence, c.src, allocated>>20)
	}
}

// measure returns the error, compiling or evaluating, and what was allocated.
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
