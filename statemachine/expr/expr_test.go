package expr

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
	"troupe/statemachine/data"
)

func mustData(tb testing.TB, text string) data.Value {
	tb.Helper()
	v, err := data.Clean([]byte(text))
	if err != nil {
		tb.Fatalf("test data %s: %v", text, err)
	}
	return v
}

func newEnv(tb testing.TB) *Env {
	tb.Helper()
	e, err := New(Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

const samplePublic = `{"amount":1500,"rate":1.5,"requester":"ada","items":[{"qty":2,"name":"b"},{"qty":3,"name":"a"}],` +
	`"tags":["x","y"],"nothing":null,"big":12345678901234567890,"whole":1500.0,"address":{"zip":"1010","city":"Wien"},` +
	`"flag":true,"mixed":[3,1.5,2],"text":"Grüße","empty":{},"none":[]}`

func sample(tb testing.TB) *Scope {
	tb.Helper()
	return &Scope{
		Event:   &Event{Name: "approve", ID: "e1", Data: mustData(tb, `{"comment":"ok","address":{"z":1,"a":[1, 2.50]}}`)},
		Public:  mustData(tb, samplePublic),
		Private: mustData(tb, `{"autoLimit":2000,"secret":"s"}`),
		User:    User{ID: "bob", Name: "Bob Ray", Roles: []string{"clerk", "manager"}, Privileges: []string{"mod-form"}},
		Instance: Instance{
			ID: "01ARZ", WorkflowID: "invoice", Version: 3, CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600)),
			States: func() data.Value { return mustData(tb, `[{"stateMachineId":"main","nodeId":"review"}]`) },
		},
		Now: time.Date(2026, 3, 2, 8, 30, 0, 250e6, time.UTC),
		In:  func(node string) bool { return node == "review" || node == "main.review" },
	}
}

func outcome(tb testing.TB, e *Env, src string, s *Scope) string {
	tb.Helper()
	p, err := e.Compile(src)
	if err != nil {
		return "compile: " + err.Error()
	}
	v, err := p.Value(s)
	if err != nil {
		assert.ErrorIs(tb, err, ErrEval, "%s: error", src)
		return strings.TrimPrefix(err.Error(), ErrEval.Error()+": ")
	}
	return string(v)
}

// TestExpressions plays testdata/expression, each file on a scope of its own:
//
//	eval, condition, compile  an expression: its value, what it is refused for, or what it fails with
//	cost                      whether its evaluations are counted
//	reads, names              what it reads, and what it names of svcPrivate and of the nodes
//	rename                    with n, list, lists, math and user as members of svcPublic
//	constants, with, locals   names more that expressions may use, and their values
//	scope, event, public      an empty scope, or the sample; an event with these data; other public data
func TestExpressions(t *testing.T) {
	datadriven.Walk(t, "testdata/expression", func(t *testing.T, path string) {
		e, s := newEnv(t), sample(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			answer, err := play(t, &e, &s, d.Cmd, expand(d.Input))
			if err != nil {
				fault, known := errors.AsType[*CompileError](err)
				assert.True(t, !known || !strings.ContainsAny(fault.Reason, "\n\r") && len([]rune(fault.Reason)) <= maxReasonChars+1, "%s", fault)
				return err.Error()
			}
			return answer
		})
	})
}

func play(t *testing.T, e **Env, s **Scope, cmd, text string) (answer string, err error) {
	var p *Program
	next := *e
	switch cmd {
	case "eval":
		return outcome(t, *e, text, *s), nil
	case "condition":
		_, err = next.CompileBool(text)
	case "compile", "cost", "reads", "names":
		p, err = next.Compile(text)
	case "rename":
		return Rename(text, func(name string) string {
			if slices.Contains([]string{"n", "list", "lists", "math", "user"}, name) {
				return "svcPublic." + name
			}
			return ""
		})
	case "constants":
		next, err = next.WithConstants(mustData(t, text))
	case "with":
		next, err = next.With(strings.Split(text, "\n")...)
		assert.True(t, err == nil || errors.Is(err, ErrName), "%v", err)
	case "scope":
		if *s = (&Scope{}); text != "" {
			*s = sample(t)
		}
	case "public":
		(*s).Public = mustData(t, text)
	case "event":
		if (*s).Event = (&Event{Name: "n"}); text != "" {
			(*s).Event.Data = mustData(t, text)
		}
	case "locals":
		(*s).Locals = map[string]data.Value{}
		for name, v := range mustData(t, text).Members() {
			(*s).Locals[name] = v
		}
	default:
		t.Fatalf("unknown command %q", cmd)
	}
	if err != nil {
		return "", err
	}
	*e = next
	switch cmd {
	case "cost":
		return map[bool]string{true: "counted", false: "bounded"}[p.program == p.counted], nil
	case "reads":
		roots := slices.DeleteFunc([]string{"event", "svcPublic", "svcPrivate", "user", "instance", "now", "item"}, func(root string) bool { return !p.Reads(root) })
		return cmp.Or(strings.Join(roots, " "), "nothing"), nil
	case "names":
		members, all := p.PrivateMembers()
		return fmt.Sprintf("nodes %v, private %v, all %t", p.Nodes(), members, all), nil
	}
	return "ok", nil
}

var repeated = regexp.MustCompile(`⟨(.*?)⟩\{(\d+)\}`)

func expand(text string) string {
	return repeated.ReplaceAllStringFunc(text, func(part string) string {
		m := repeated.FindStringSubmatch(part)
		n, _ := strconv.Atoi(m[2])
		return strings.Repeat(m[1], n)
	})
}

func TestOptions(t *testing.T) {
	small, err := New(Options{CostMax: 100, TrackAbove: 1})
	require.NoError(t, err)
	_, err = small.Compile(`svcPublic.items.all(i, i.qty > 0)`)
	require.Error(t, err, "a loop under CostMax 100")
	p, err := small.Compile(`svcPublic.amount > 1`)
	assert.True(t, err == nil && p.program == p.counted, "a guard above TrackAbove 1: %v", err)
	_, err = small.Compile("\"\xff\"")
	assert.EqualError(t, err, "1:1: not UTF-8")
}

func TestSortIsStableAndSorts(t *testing.T) {
	e := newEnv(t)
	p, err := e.Compile(`svcPublic.l.sortBy(x, x.k)`)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{"1", "1.5", "2.0", "-3", "2"}), 0, 12).Draw(t, "keys")
		var items []string
		for i, k := range keys {
			items = append(items, fmt.Sprintf(`{"k":%s,"i":%d}`, k, i))
		}
		sorted := slices.Clone(items)
		slices.SortStableFunc(sorted, func(a, b string) int {
			x, _ := data.Value(a).Lookup("k")
			y, _ := data.Value(b).Lookup("k")
			return data.Compare(x, y)
		})
		got, err := p.Value(&Scope{Public: data.Value(`{"l":[` + strings.Join(items, ",") + `]}`)})
		want := "[" + strings.Join(sorted, ",") + "]"
		require.True(t, string(got) == want && err == nil, "got %s, %v, want %s", got, err, want)
	})
}
