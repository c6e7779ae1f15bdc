package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

func TestCompileErrors(t *testing.T) {
	e := newEnv(t)
	for _, c := range []struct{ sentence, src, want string }{
		{"nothing is no expression", "  ", "1:1: an expression is missing"},
		{"an unfinished expression", "svcPublic.amount >", "1:19: Syntax error: the expression is not complete"},
		{"a fault on a later line", "svcPublic.amount >\n  nope", "2:3: undeclared reference to 'nope'"},
		{"columns count characters", `"ää" + nope`, "1:8: undeclared reference to 'nope'"},
		{"a text without an end", `"abc`, `1:1: Syntax error: token recognition error at: '"abc'`},
		{"an unknown variable", "foo", "1:1: undeclared reference to 'foo'"},
		{"an unknown field of user", "user.nmae", "1:5: undefined field 'nmae'"},
		{"an unknown field of event", "event.user", "1:6: undefined field 'user'"},
		{"a text compared with a number", "user.id == 1", "1:9: found no matching overload for '==' applied to '(string, int)'"},
		{"a name added to a number", "instance.version + user.id", "1:18: found no matching overload for '+' applied to '(int, string)'"},
		{"a timestamp compared with a text", `now > "x"`, "1:5: found no matching overload for '>' applied to '(timestamp, string)'"},
		{"In without a node", "In()", "1:3: undeclared reference to 'In'"},
		{"In with a number", "In(1)", "1:4: In takes the name of a node"},
		{"the variable behind In has no name", `@nodes["x"]`, "1:1: Syntax error: token recognition error at: '@'"},
		{"a message", `troupe.User{id: "x"}`, "1:12: only lists and maps can be written down, not user"},
		{"a time zone by name", `now.getHours("Europe/Vienna")`, `1:13: a time zone must be written as "UTC" or as an offset like "+02:00"`},
		{"a time zone from the data", `now.getHours(svcPublic.zone)`, `1:13: a time zone must be written as "UTC" or as an offset like "+02:00"`},
		{"a bad duration", `now + duration("x")`, "1:16: invalid duration argument"},
		{"a bad timestamp", `now > timestamp("x")`, "1:17: invalid timestamp argument"},
		{"a bad pattern", `user.id.matches("(")`, "1:17: the pattern: error parsing regexp: missing closing ): `(`"},
		{"a pattern that is too large", `user.id.matches("(a|b){0,1000}c")`, "1:17: the pattern: it has 4001 instructions, the limit is 2000: a repetition counts as what it repeats, so many times"},
		{"too many nested loops", "[1]" + strings.Repeat(".map(x, x)", 9), "1:8: comprehension exceeds nesting limit"},
		{"too many nested bindings", strings.Repeat("cel.bind(x, 1, ", 40) + "1" + strings.Repeat(")", 40), "1:129: cel.bind exceeds nesting limit"},
		{"a function that the profile does not have", `json.encode(svcPublic)`, "1:1: undeclared reference to 'json'"},
		{"there is no clock but now", `timestamp.now()`, "1:1: undeclared reference to 'timestamp'"},
		{"no bytes but UTF-8", "\"\xff\"", "1:1: not UTF-8"},
		{"no end", strings.Repeat("1+", 10_000) + "1", "1:1: longer than 16384 bytes"},
		{"too deep", strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), "1:1: expression recursion limit exceeded: 100"},
	} {
		p, err := e.Compile(c.src)
		var fault *CompileError
		if !assert.True(t, errors.As(err, &fault) && p == nil, "%s: got %v, %v, want a *CompileError", c.sentence, p, err) {
			continue
		}
		assert.Equal(t, c.want, err.Error(), "%v %v", c.sentence, c.src)
		assert.True(t, !strings.ContainsAny(fault.Reason, "\n\r") && len([]rune(fault.Reason)) <= maxReasonChars+1, "%v %v", c.sentence, fault.Reason)
	}
}

func TestAConditionMustBeABool(t *testing.T) {
	e := newEnv(t)
	for src, want := range map[string]string{
		`svcPublic.amount > 1`:         "",
		`svcPublic.flag`:               "",
		`has(event.data.x) && true`:    "",
		`svcPublic.amount + 1`:         "", // only the data can tell
		`user.id`:                      "1:1: the result must be a bool, not string",
		`instance.version + 1`:         "1:1: the result must be a bool, not int",
		`now`:                          "1:1: the result must be a bool, not timestamp",
		`user`:                         "1:1: the result must be a bool, not user",
		`optional.of(true)`:            "1:1: the result must be a bool, not optional_type(bool)",
		`[true]`:                       "1:1: the result must be a bool, not list(bool)",
		`svcPublic.?amount.orValue(1)`: "",
	} {
		_, err := e.CompileBool(src)
		got := fmt.Sprint(err)
		assert.True(t, (err == nil || got == want) && (err != nil || want == ""), "%s: got %q, want %q", src, got, want)
	}
}

func TestACostIsRefusedWhenItIsCompiled(t *testing.T) {
	e := newEnv(t)
	for _, c := range []struct {
		sentence, src, refused string
		tracked                bool
	}{
		{sentence: "a guard is cheap", src: `svcPublic.amount <= svcPrivate.autoLimit`},
		{sentence: "a role is cheap", src: `"manager" in user.roles && user.id != svcPublic.requester`},
		{sentence: "In is cheap", src: `In("payment.paid") || In("main.closed")`},
		{sentence: "one loop is tracked", src: `svcPublic.items.all(i, i.qty > 0)`, tracked: true},
		{sentence: "a loop in a loop over parts is tracked", src: `svcPublic.items.all(i, i.subs.all(j, j.qty > 0))`, tracked: true},
		{sentence: "a list in a list is tracked", src: `event.data.ids.all(i, i in svcPublic.ids)`, tracked: true},
		{sentence: "sort is tracked", src: `svcPublic.items.sortBy(i, i.price).map(i, i.name).join(", ")`, tracked: true},
		{sentence: "split is tracked", src: `svcPublic.text.split(",").map(x, x.trim())`, tracked: true},
		{sentence: "format in a loop is tracked", src: `svcPublic.items.map(i, "%s: %d".format([i.name, i.qty]))`, tracked: true},
		{sentence: "an optional list's part is bounded", src: `svcPublic.items[?0].?name.orValue("") + "x"`},
		{sentence: "a computed map's part is bounded", src: `svcPublic.?address.orValue({})["zip"] + "y"`},
		{sentence: "a sorted list's part is bounded", src: `svcPublic.items.sortBy(i, i.name)[0].name.contains("x")`, tracked: true},
		{sentence: "joining computed texts is tracked", src: `svcPublic.items.map(i, i.name + " (" + string(i.qty) + ")").join(", ")`, tracked: true},
		{
			sentence: "a loop over everything in a loop over everything", src: `svcPublic.items.all(i, svcPublic.items.all(j, i.qty + j.qty > 0))`,
			refused: "worst-case cost 28006003, the limit is 1000000",
		},
		{
			sentence: "four loops", src: `svcPublic.l.map(a, svcPublic.l.map(b, svcPublic.l.map(c, svcPublic.l.map(d, d))))`,
			refused: "the limit is 1000000",
		},
		{
			sentence: "a text doubled again and again", src: doublings(8, `svcPublic.text + svcPublic.text`) + ` + ""`, tracked: true,
		},
		{
			sentence: "quotes of quotes", src: strings.Repeat("strings.quote(", 30) + "svcPublic.text" + strings.Repeat(")", 30),
			refused: "worst-case cost 107588930674, the limit is 1000000",
		},
	} {
		p, err := e.Compile(c.src)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: got %v, want no error", c.sentence, err)
		case c.refused == "" && (p.program == p.counted) != c.tracked:
			t.Errorf("%s: tracked: got %v, want %v", c.sentence, (p.program == p.counted), c.tracked)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "too expensive")):
			t.Errorf("%s: got %v, want too expensive: … %s", c.sentence, err, c.refused)
		}
	}
}

// doublings adds a value to itself n times.
func doublings(n int, src string) string {
	for i := range n {
		src = fmt.Sprintf("cel.bind(v%d, %s, v%[1]d + v%[1]d)", i, src)
	}
	return src
}

func TestOptions(t *testing.T) {
	small, err := New(Options{CostMax: 100, TrackAbove: 1})
	require.NoError(t, err)
	_, err = small.Compile(`svcPublic.items.all(i, i.qty > 0)`)
	assert.Error(t, err, "a loop under CostMax 100: got no error")
	p, err := small.Compile(`svcPublic.amount > 1`)
	if err != nil || !(p.program == p.counted) {
		t.Errorf("a guard above TrackAbove 1: got %v, tracked %v", err, p != nil && (p.program == p.counted))
	}
}

func TestReads(t *testing.T) {
	e, err := newEnv(t).With("item")
	require.NoError(t, err)
	roots := []string{"event", "svcPublic", "svcPrivate", "user", "instance", "now", "item"}
	for src, want := range map[string][]string{
		`1 == 1`:                                nil,
		`svcPublic.a > svcPrivate.b`:            {"svcPublic", "svcPrivate"},
		`In("x") && user.id == "y"`:             {"user", "instance"},
		`has(event.data.x)`:                     {"event"},
		`[1].map(x, now)`:                       {"now"},
		`item.x in instance.states`:             {"instance", "item"},
		`{"a": svcPublic.?b}`:                   {"svcPublic"},
		`.svcPublic.x == 1`:                     {"svcPublic"},
		`true ? 1 : svcPrivate.x`:               {"svcPrivate"},
		`cel.bind(x, svcPublic.x, x + user.id)`: {"svcPublic", "user"},
	} {
		p, err := e.Compile(src)
		if !assert.NoError(t, err, src) {
			continue
		}
		for _, root := range roots {
			assert.Equal(t, slices.Contains(want, root), p.Reads(root), "%s: Reads(%q)", src, root)
		}
	}
}

func TestWith(t *testing.T) {
	base := newEnv(t)
	e, err := base.With("item", "index")
	require.NoError(t, err)
	inner, err := e.With("inner")
	require.NoError(t, err)
	s := &Scope{Locals: map[string]data.Value{
		"item": mustData(t, `{"n":1,"big":100000000000000000001}`), "index": mustData(t, `4`), "inner": mustData(t, `[1,2]`),
	}}
	for _, c := range []struct {
		env       *Env
		src, want string
	}{
		{e, `item.n + index`, `5`},
		{e, `item`, `{"n":1,"big":100000000000000000001}`},
		{e, `item.big`, `100000000000000000001`},
		{inner, `inner.map(i, i + item.n + index)`, `[6,7]`},
		{base, `item.n`, `compile: 1:1: undeclared reference to 'item'`},
		{e, `inner`, `compile: 1:1: undeclared reference to 'inner'`},
	} {
		got := outcome(t, c.env, c.src, s)
		got, _, _ = strings.Cut(got, " (did")
		assert.Equal(t, c.want, got, c.src)
	}
	assert.Equal(t, "no such attribute(s): item", outcome(t, e, `item.n`, &Scope{}), "without the variable")
	for _, bad := range []string{"", "a-b", "1a", "in", "true", "svcPublic", "now", "item", "@x", "a.b"} {
		_, err := e.With(bad)
		assert.ErrorIs(t, err, ErrName, "With(%q)", bad)
	}
	_, err = base.With("a", "a")
	assert.ErrorIs(t, err, ErrName, "a name twice")
}
