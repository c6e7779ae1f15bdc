package scxml_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/scxml/ecmascript"
)

var known = []string{"a", "b", "list", "text", "o", "none"}

func names() ecmascript.Names {
	return ecmascript.Names{Title: "chart", Variable: func(name string) string {
		if slices.Contains(known, name) {
			return "svcPublic." + name
		}
		return ""
	}}
}

// TestExpressions plays testdata/expression: what package ecmascript makes of an expression, and what that is with some data.
func TestExpressions(t *testing.T) {
	datadriven.Walk(t, "testdata/expression", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			src := repeated.ReplaceAllStringFunc(d.Input, func(part string) string {
				m := repeated.FindStringSubmatch(part)
				n, _ := strconv.Atoi(m[2])
				return strings.Repeat(m[1], n)
			})
			out, err := rewritten(t, src)
			if err != nil {
				refused, ok := errors.AsType[*ecmascript.Refused](err)
				require.True(t, ok, "%v", err)
				return "refused: " + refused.What
			}
			return out
		})
	})
}

var repeated = regexp.MustCompile(`⟨(.*?)⟩\{(\d+)\}`)

func rewritten(t *testing.T, src string) (string, error) {
	e, err := ecmascript.Parse(src)
	if err != nil {
		return "", err
	}
	value, err := e.Value(names())
	if err != nil {
		return "", err
	}
	condition, err := e.Condition(names())
	if err != nil {
		return "", err
	}
	out := fmt.Sprintf("value      %s -> %s\ncondition  %s -> %s\n", value, evaluate(t, value), condition, evaluate(t, condition))
	if parts, err := e.Text(names()); err != nil || len(parts) > 1 || parts[0].Value != value {
		out += fmt.Sprintf("log        %+v %v\n", parts, err)
	}
	if v, ok := e.Constant(); ok {
		out += fmt.Sprintf("constant   %s\n", v)
	}
	if name, path, ok := e.Place(); ok {
		out += fmt.Sprintf("place      %q %q\n", name, path)
	}
	if e.IsBroken() {
		out += "broken\n"
	}
	return out, nil
}

var language = sync.OnceValues(func() (*expr.Env, error) {
	env, err := expr.New(expr.Options{})
	if err != nil {
		return nil, err
	}
	return env.With("_event")
})

func evaluate(t *testing.T, src string) string {
	t.Helper()
	env, err := language()
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

// FuzzParse: whatever the text is, the rewriting ends without a panic, and gives CEL that the language takes or refuses.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a + 1", "typeof a === 'undefined'", "[].concat(a, [4])", "{p1: 'v1'", "'x' in _event && !b", "a ? b : c", "++a", "Math.max(a, b)", "o['x'].y.length"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := ecmascript.Parse(src)
		if err != nil {
			return
		}
		for _, how := range []func(*ecmascript.Expression, ecmascript.Names) (string, error){(*ecmascript.Expression).Value, (*ecmascript.Expression).Condition} {
			out, err := how(e, names())
			var refused *ecmascript.Refused
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
