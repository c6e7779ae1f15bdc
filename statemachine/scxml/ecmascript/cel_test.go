package ecmascript

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// known are the variables of the tests.
var known = []string{"a", "b", "list", "text", "o", "none"}

func names() Names {
	return Names{Title: "chart", Variable: func(name string) string {
		if slices.Contains(known, name) {
			return "svcPublic." + name
		}
		return ""
	}}
}

// TestRewriting: what becomes of an expression, as a value and as a condition, and what it gives on sample data.
func TestRewriting(t *testing.T) {
	for _, c := range []struct{ src, value, result, condition, holds string }{
		{"1", "1", "1", "1 != 0", "true"},
		{"0x10 + .5", "16 + 0.5", "16.5", "16 + 0.5 != 0", "true"},
		{"a + 1", "svcPublic.a + 1", "3", "!(svcPublic.a + 1 in [null, false, 0, \"\"])", "true"},
		{"'x' + a", `"x" + string(svcPublic.a)`, `"x2"`, `"x" + string(svcPublic.a) != ""`, "true"},
		{"a + 1 + 'x'", `string(svcPublic.a + 1) + "x"`, `"3x"`, `string(svcPublic.a + 1) + "x" != ""`, "true"},
		{"a === 2 && b !== 3", "svcPublic.a == 2 && svcPublic.b != 3", "false", "svcPublic.a == 2 && svcPublic.b != 3", "false"},
		{"a == 2 || b == 3 && a == 4", "svcPublic.a == 2 || svcPublic.b == 3 && svcPublic.a == 4", "true", "svcPublic.a == 2 || svcPublic.b == 3 && svcPublic.a == 4", "true"},
		{"(a == 1 || b == 3) && !(a == 2)", "(svcPublic.a == 1 || svcPublic.b == 3) && !(svcPublic.a == 2)", "false", "(svcPublic.a == 1 || svcPublic.b == 3) && !(svcPublic.a == 2)", "false"},
		{"a - (b - 1)", "svcPublic.a - (svcPublic.b - 1)", "0", "svcPublic.a - (svcPublic.b - 1) != 0", "false"},
		{"b / a", "double(svcPublic.b) / double(svcPublic.a)", "1.5", "double(svcPublic.b) / double(svcPublic.a) != 0", "true"},
		{"-a * 2", "-svcPublic.a * 2", "-4", "-svcPublic.a * 2 != 0", "true"},
		{"b % a", "svcPublic.b % svcPublic.a", "1", "svcPublic.b % svcPublic.a != 0", "true"},
		{"a < b", "svcPublic.a < svcPublic.b", "true", "svcPublic.a < svcPublic.b", "true"},
		{"a ? 'yes' : 'no'", `!(svcPublic.a in [null, false, 0, ""]) ? "yes" : "no"`, `"yes"`, `!(svcPublic.a in [null, false, 0, ""]) ? true : false`, ""},
		{"a || 7", `!(svcPublic.a in [null, false, 0, ""]) ? svcPublic.a : 7`, "2", "", "true"},
		{"none ?? 7", "svcPublic.none != null ? svcPublic.none : 7", "7", "", ""},
		{"!text", `!!(svcPublic.text in [null, false, 0, ""])`, "false", "", "false"},
		{"typeof a === 'undefined'", "svcPublic.a == null", "false", "svcPublic.a == null", "false"},
		{"typeof nobody === 'undefined'", "null == null", "true", "null == null", "true"},
		{"'undefined' != typeof a", "!(svcPublic.a == null)", "true", "", "true"},
		{"typeof a == 'number'", "type(svcPublic.a) in [int, double]", "true", "", "true"},
		{"none == undefined", "svcPublic.none == null", "true", "", "true"},
		{"o.deep.x", "svcPublic.o.deep.?x.orValue(null)", "1", `!(svcPublic.o.deep.?x.orValue(null) in [null, false, 0, ""])`, "true"},
		{"o.missing", "svcPublic.o.?missing.orValue(null)", "null", "", "false"},
		{"o.missing > 1", "has(svcPublic.o.missing) && svcPublic.o.missing > 1", "false", "has(svcPublic.o.missing) && svcPublic.o.missing > 1", "false"},
		{"o['a b']", `svcPublic.o["a b"]`, "5", "", "true"},
		{"list[1]", "svcPublic.list[1]", "2", "", "true"},
		{"list.length", "size(svcPublic.list)", "3", "size(svcPublic.list) != 0", "true"},
		{"[].concat(list, [4])", "svcPublic.list + [4]", "[1,2,3,4]", "", "true"},
		{"[].concat([])", "[]", "[]", "true", "true"},
		{"[].concat().length", "size([])", "0", "size([]) != 0", "false"},
		{"{p1: 'v1', 'p 2': a}", `{"p1": "v1", "p 2": svcPublic.a}`, `{"p 2":2,"p1":"v1"}`, "true", "true"},
		{"list instanceof Array", "type(svcPublic.list) == list", "true", "", "true"},
		{"2 in list", "2 in svcPublic.list", "true", "", "true"},
		{"text.startsWith('he')", `svcPublic.text.startsWith("he")`, "true", "", "true"},
		{"text.toUpperCase()", "svcPublic.text.upperAscii()", `"HELLO"`, "", "true"},
		{"Math.pow(a, 3)", "svcPublic.a * svcPublic.a * svcPublic.a", "8", "", "true"},
		{"Math.max(a, b)", "math.greatest(svcPublic.a, svcPublic.b)", "3", "", "true"},
		{"Math.floor(2.5)", "math.floor(double(2.5))", "2", "", "true"},
		{"In('s1')", `In("s1")`, "false", `In("s1")`, "false"},
		{"In('s1') | In('s2')", `In("s1") || In("s2")`, "false", "", "false"},
		{"_name", `"chart"`, `"chart"`, `"chart" != ""`, "true"},
		{"_sessionid", "instance.id", `"i"`, `instance.id != ""`, "true"},
		{"'name' in _event", "true", "true", "true", "true"},
		{"_event.data.x == 1", "_event.data.?x.orValue(null) == 1", "true", "_event.data.?x.orValue(null) == 1", "true"},
		{"_event.sendid", "_event.sendid", "null", "", "false"},
		{"1 == '1'", `dyn(1) == "1"`, "false", "", "false"},
		{"'\\x41\\u0042\\n\\''", `"AB\n'"`, `"AB\n'"`, "", "true"},
		{"a /* in between */ + 1 // behind", "svcPublic.a + 1", "3", "", "true"},
	} {
		e, err := Parse(c.src)
		if err != nil || e.IsBroken() {
			t.Errorf("%s: %v, broken %t", c.src, err, err == nil && e.IsBroken())
			continue
		}
		value, err := e.Value(names())
		assert.True(t, err == nil && value == c.value, "%s as a value: got %s, %v, want %s", c.src, value, err, c.value)
		assert.Equal(t, c.result, evaluate(t, value), c.src)
		condition, err := e.Condition(names())
		assert.True(t, err == nil && !(c.condition != "" && !strings.Contains(condition, "?") && condition != c.condition),
			"%s as a condition: got %s, %v, want %s", c.src, condition, err, c.condition)
		got := evaluate(t, condition)
		assert.False(t, c.holds != "" && got != c.holds, "%s holds: got %s, want %s", c.src, got, c.holds)
	}
}

// evaluate gives the JSON of an expression on sample data, or why it fails.
func evaluate(t *testing.T, src string) string {
	t.Helper()
	env, err := expr.New(expr.Options{})
	if err == nil {
		env, err = env.With("_event")
	}
	require.NoError(t, err)
	p, err := env.Compile(src)
	if err != nil {
		return err.Error()
	}
	v, err := p.Value(&expr.Scope{
		Public:   data.Value(`{"a":2,"b":3,"list":[1,2,3],"text":"hello","o":{"deep":{"x":1},"a b":5},"none":null}`),
		Instance: expr.Instance{ID: "i"},
		Locals:   map[string]data.Value{"_event": data.Value(`{"name":"e","sendid":null,"data":{"x":1}}`)},
	})
	if err != nil {
		return err.Error()
	}
	return string(v)
}

func TestRefusals(t *testing.T) {
	for src, what := range map[string]string{
		"new Date()": "new", "function(x) { return x; }": "a function", "x => x": "a function", "() => 1": "a function", "++a == 2": "an assignment inside an expression",
		"a++": "an assignment inside an expression", "a = 1": "an assignment inside an expression", "(a += 1)": "an assignment inside an expression",
		"`x`": "template literals", "/x/.test(text)": "a regular expression", "a, b": "the comma operator", "text.search('x')": "the function search",
		"a instanceof Date": "instanceof", "this.a": "this", "a(1)": "a function", "JSON.stringify(a)": "JSON.stringify outside of a log", "Date": "Date",
		"a & 3": "the operator &", "a << 1": "the operator <<", "~a": "the operator ~", "typeof a": "typeof that is not compared with a word",
		"_ioprocessors['basichttp']['location']": "the BasicHTTP event processor", "Math.pow(a, b)": "a power that is not a small whole number",
		"[...list]": "a spread", "1e400": "a number of that size", "o.f = function() {}": "an assignment inside an expression", "{f() {}}": "a function",
		strings.Repeat("(", 100) + "a": "an expression that is nested so deep", strings.Repeat("!", 100) + "a": "an expression that is nested so deep",
		strings.Repeat("a+", 1<<14) + "a": "an expression of more than 16 KiB",
	} {
		e, err := Parse(src)
		if err == nil {
			_, err = e.Value(names())
		}
		var refused *Refused
		assert.True(t, errors.As(err, &refused) && refused.What == what, "%.60s: got %v, want %s", src, err, what)
	}
}

// TestWhatFailsWhenItRuns: a text that is no expression, and a name that nobody declares, fail in ECMAScript only then.
func TestWhatFailsWhenItRuns(t *testing.T) {
	for _, src := range []string{"return", "a +", "'x", "1 2", "}", "{a: 'b'", "foo.bar.baz", "doError()", "nobody + 1", "", "a b", "#", "0x"} {
		e, err := Parse(src)
		if !assert.NoError(t, err, src) {
			continue
		}
		for _, how := range []func(*Expression, Names) (string, error){(*Expression).Value, (*Expression).Condition} {
			out, err := how(e, names())
			want := "ecmascript(" + quote(src) + ")"
			assert.True(t, err == nil && out == want, "%s: got %s, %v, want %s", src, out, err, want)
			assert.Contains(t, evaluate(t, out), "undeclared reference to 'ecmascript'", "%s runs", src)
		}
	}
}

func TestTextOfALog(t *testing.T) {
	for src, want := range map[string]string{
		"'got ' + a + '!'":                 "got |=svcPublic.a|!",
		"'unhandled ' + JSON.stringify(o)": "unhandled |=svcPublic.o",
		"a + b":                            "=svcPublic.a + svcPublic.b",
		"a + b + ' of'":                    "=string(svcPublic.a + svcPublic.b) + \" of\"",
		"JSON.stringify(_event)":           "=_event",
		"'x'":                              "x",
		"return":                           `=ecmascript("return")`,
		"'a' + nobody":                     `a|=ecmascript("'a' + nobody")`,
	} {
		e, err := Parse(src)
		require.NoError(t, err)
		parts, err := e.Text(names())
		var out []string
		for _, p := range parts {
			if p.Value != "" {
				out = append(out, "="+p.Value)
			} else {
				out = append(out, p.Literal)
			}
		}
		got := strings.Join(out, "|")
		assert.True(t, err == nil && got == want, "%s: got %s, %v, want %s", src, got, err, want)
	}
}

func TestConstantsAndPlaces(t *testing.T) {
	for src, want := range map[string]string{
		"1": "1", "-1.50": "-1.5", "'x'": `"x"`, "[1, [true, null]]": "[1,[true,null]]", "{a: undefined}": `{"a":null}`, "a": "", "1 + 1": "", "{a: b}": "", "return": "", "010": "10",
	} {
		e, err := Parse(src)
		require.NoError(t, err)
		v, ok := e.Constant()
		assert.True(t, string(v) == want && ok == (want != ""), "%s: got %s, %t, want %q", src, v, ok, want)
	}
	for src, want := range map[string]string{"a": "a", "a.b": "a b", "a['b c'][0]": "a b c 0", "a[b]": "", "f()": "", "return": "", "1": ""} {
		e, err := Parse(src)
		require.NoError(t, err)
		name, path, ok := e.Place()
		got := strings.Join(append([]string{name}, path...), " ")
		assert.True(t, ok == (want != "") && got == want, "%s: got %q, %t, want %q", src, got, ok, want)
	}
}

// FuzzParse: whatever the text is, the rewriting ends without a panic, and gives CEL that the language takes or refuses.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a + 1", "typeof a === 'undefined'", "[].concat(a, [4])", "{p1: 'v1'", "'x' in _event && !b", "a ? b : c", "++a", "Math.max(a, b)", "o['x'].y.length"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := Parse(src)
		if err != nil {
			return
		}
		for _, how := range []func(*Expression, Names) (string, error){(*Expression).Value, (*Expression).Condition} {
			out, err := how(e, names())
			var refused *Refused
			require.False(t, err != nil && !errors.As(err, &refused), "%q: %v", src, err)
			require.False(t, err == nil && strings.TrimSpace(out) == "", "%q gives nothing", src)
		}
		e.Constant()
		e.Place()
		if _, err := e.Text(names()); err != nil {
			return
		}
	})
}
