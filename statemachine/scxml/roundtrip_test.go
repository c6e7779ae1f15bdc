package scxml

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/internal/markdown"
)

// definitionsOf returns the definitions of the scenarios, of the document of the format and of the example home.
func definitionsOf(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("../testdata/scenario/*.txt")
	require.True(t, err == nil && len(files) != 0, "no scenarios: %v", err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for n, part := range strings.Split("\n"+string(b), "\ndefine\n")[1:] {
			text, _, _ := strings.Cut(part, "\n----")
			out[fmt.Sprintf("%s %d", filepath.Base(file), n)] = text
		}
	}
	out["names with blanks"] = "id: loan\nstateMachines:\n  main:\n    initial: in stock\n    states:\n      in stock: {on: {lend: on loan}, after: {1h: on loan}}\n" +
		"      on loan: {initial: with user, states: {with user: {on: {give: over}}, over: {type: final}}, onDone: in stock, on: {check: {guard: 'In(\"on loan\")', target: in stock}}}\n"
	b, err := os.ReadFile("../DEFINITION.md")
	require.NoError(t, err)
	out["DEFINITION.md"] = strings.Replace(markdown.Blocks(markdown.Section(string(b), "A complete example"), "yaml")[0], "svcPublic: {$ref: invoice.schema.json}", "svcPublic: {type: object}", 1)
	return out
}

func newParser(t *testing.T) *statemachine.Parser {
	t.Helper()
	p, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	return p
}

// TestARoundTripKeepsBehaviour: a definition and what Import makes of what Export writes take the same events in the same way, byte for byte.
func TestARoundTripKeepsBehaviour(t *testing.T) {
	parser := newParser(t)
	for name, text := range definitionsOf(t) {
		t.Run(name, func(t *testing.T) {
			before, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(text)})
			if err != nil {
				t.Skipf("it has faults: %v", err)
			}
			exported, err := Export("w.yaml", []byte(text))
			require.NoError(t, err)
			files, err := Import("w.scxml", exported.Text, nil)
			require.NoError(t, err, exported.Text)
			after, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: files[0].Text})
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, files[0].Text, exported.Text)
			}
			rapid.Check(t, func(t *rapid.T) { require.Empty(t, compareBehaviour(t, before.Definition, after.Definition)) })
		})
	}
}

// lines are where an expression stands, which is elsewhere after a round trip.
var lines = regexp.MustCompile(`[\w.-]+\.yaml:\d+: `)

// compareBehaviour plays the same to both and returns the first difference; "" for none.
func compareBehaviour(t *rapid.T, a, b *statemachine.Definition) (different string) {
	caller := &statemachine.Caller{ID: "john", Roles: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"manager", "clerk", "hr"}), rapid.ID).Draw(t, "roles")}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var p [2]statemachine.Instance
	both := func(what string, step func(d *statemachine.Definition, in *statemachine.Instance) (statemachine.Result, error)) bool {
		ra, errA := step(a, &p[0])
		rb, errB := step(b, &p[1])
		if one, two := show(a, ra, errA), show(b, rb, errB); one != two {
			different = fmt.Sprintf("%s:\n%s\n%s", what, one, two)
		}
		if errA != nil || different != "" {
			return false
		}
		p = [2]statemachine.Instance{ra.Instance, rb.Instance}
		return true
	}
	payloads := rapid.SampledFrom([]string{"", "{}", `{"amount":7,"n":1,"customer":"x","items":[{"price":2}]}`, `{"svcPublic":{"a":1}}`, `{"comment":"c","status":"new"}`})
	public := clean(t, payloads.Draw(t, "public"))
	if !both("create", func(d *statemachine.Definition, _ *statemachine.Instance) (statemachine.Result, error) {
		return d.Create(statemachine.Creation{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Caller: caller, Public: public, Now: now})
	}) {
		return different
	}
	names := a.EventNames()
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		if different != "" {
			break
		}
		now = now.Add(time.Hour)
		timers := p[0].Timers()
		switch {
		case len(timers) > 0 && rapid.Bool().Draw(t, "timer"):
			id := rapid.SampledFrom(timers).Draw(t, "which").ID
			both("timer", func(d *statemachine.Definition, in *statemachine.Instance) (statemachine.Result, error) {
				return d.Fire(in, id, now)
			})
		case len(p[0].Children()) > 0 && rapid.Bool().Draw(t, "child"):
			id, failed := rapid.SampledFrom(p[0].Children()).Draw(t, "which").ID, rapid.Bool().Draw(t, "failed")
			both("told", func(d *statemachine.Definition, in *statemachine.Instance) (statemachine.Result, error) {
				return d.Callback(in, id, failed, data.Value(`{"output":1,"message":"m"}`), now)
			})
		case len(names) > 0:
			name := rapid.SampledFrom(names).Draw(t, "event")
			v := clean(t, payloads.Draw(t, "data"))
			both(string(name), func(d *statemachine.Definition, in *statemachine.Instance) (statemachine.Result, error) {
				return d.Step(in, statemachine.Event{Name: name, Data: v, Caller: caller, Now: now})
			})
		}
	}
	return different
}

func show(d *statemachine.Definition, r statemachine.Result, err error) string {
	if err != nil {
		return lines.ReplaceAllString(err.Error(), "")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d %q %s %q", r.Outcome, d.AppendRecord(nil, &r.Instance, statemachine.Chain{}, nil), r.Entry.AppendJSON(nil), r.Logs)
	for _, o := range r.Deliveries {
		fmt.Fprintf(&out, " %+v %+v %+v %+v %+v", o.Webhook, string(o.Body), o.To, o.Subject, o.Text)
		if o.Start != nil {
			fmt.Fprintf(&out, " start %+v", *o.Start)
		}
		if o.Forward != nil {
			fmt.Fprintf(&out, " forward %+v %s", o.Forward.Event, o.Forward.Data)
		}
	}
	return out.String()
}

func clean(t *rapid.T, text string) data.Value {
	if text == "" {
		return nil
	}
	v, err := data.Clean([]byte(text))
	require.NoError(t, err)
	return v
}

// TestAChangedDefinitionIsNoticed is the control of TestARoundTripKeepsBehaviour.
func TestAChangedDefinitionIsNoticed(t *testing.T) {
	const text = `
id: w
context: {svcPublic: {n: 0}}
stateMachines:
  main:
    states:
      a:
        entry: [{assign: {svcPublic.n: '${svcPublic.n + 1}'}}]
        after: {1h: b}
        on: {again: {target: a, reenter: true}, go: {guard: 'svcPublic.n > 1', target: b}, say: {actions: [{log: 'n is ${svcPublic.n}'}]}}
      b: {on: {back: a}}
`
	parser := newParser(t)
	parse := func(text string) *statemachine.Definition {
		d, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(text)})
		require.NoError(t, err)
		return d.Definition
	}
	for _, change := range [][2]string{
		{"reenter: true", "reenter: false"}, {"svcPublic.n > 1", "svcPublic.n > 0"}, {"1h: b", "2h: b"}, {"n is", "n was"}, {"n: 0", "n: 1"}, {"svcPublic.n + 1", "svcPublic.n + 2"},
	} {
		played := rapid.Custom(func(t *rapid.T) string {
			return compareBehaviour(t, parse(text), parse(strings.Replace(text, change[0], change[1], 1)))
		})
		noticed := false
		for seed := 0; seed < 5000 && !noticed; seed++ {
			noticed = played.Example(seed) != ""
		}
		assert.True(t, noticed, "%s for %s was not noticed", change[1], change[0])
	}
}
