package xstate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/markdown"
	"troupe/statemachine/scxml"
	"troupe/statemachine/xstate/internal/tree"
)

// definitions returns the definitions of the repository by name: the example home's, that of the document of the format,
// those of the core's tests, those of this package, and what its machines become.
func definitions(t *testing.T) map[string]statemachine.Source {
	t.Helper()
	out := map[string]statemachine.Source{}
	for _, pattern := range []string{"../../cmd/troupe/example/workflows/*.yaml", "testdata/definition/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.True(t, err == nil && len(files) != 0, "no definitions: %s", pattern)
		for _, file := range files {
			out[filepath.Base(file)] = statemachine.Source{File: filepath.Base(file), Text: load(t, file)}
		}
	}
	complete := markdown.Blocks(markdown.Section(string(load(t, "../DEFINITION.md")), "A complete example"), "yaml")[0]
	complete = strings.Replace(complete, "svcPublic: {$ref: invoice.schema.json}", "svcPublic: {type: object}", 1)
	out["DEFINITION.md"] = statemachine.Source{File: "workflow.yaml", Text: []byte(complete)}
	for _, name := range machines(t, "machine") {
		name = filepath.Base(name)
		out["machine "+name] = statemachine.Source{File: name + ".yaml", Text: imported(t, filepath.Join("testdata", "machine", name)).Text}
	}
	datadriven.Walk(t, "../testdata/scenario", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(_ *testing.T, cmd *datadriven.TestData) string {
			if cmd.Cmd == "define" && !strings.HasPrefix(cmd.Expected, "workflow.yaml") {
				file := fmt.Sprintf("%s %s", filepath.Base(path), cmd.Pos[strings.LastIndex(cmd.Pos, ":")+1:])
				out[file] = statemachine.Source{File: "workflow.yaml", Text: []byte(cmd.Input)}
			}
			return cmd.Expected
		})
	})
	return out
}

// ways are those that a definition can leave the program and come back.
var ways = map[string]struct {
	without string // what marks a definition that cannot go this way
	export  func(src statemachine.Source) ([]byte, error)
	back    func(text []byte) ([]byte, error)
}{
	"xstate": {
		"semantics: scxml",
		func(src statemachine.Source) ([]byte, error) { machine, _, err := Export(src); return machine, err },
		func(text []byte) ([]byte, error) {
			files, err := Import("again.json", text)
			if err != nil {
				return nil, err
			}
			return files[0].Text, nil
		},
	},
	"scxml": {
		"semantics: xstate",
		func(src statemachine.Source) ([]byte, error) {
			x, err := scxml.Export(src.File, src.Text)
			return x.Text, err
		},
		func(text []byte) ([]byte, error) {
			files, err := scxml.Import("again.scxml", text, nil)
			if err != nil {
				return nil, err
			}
			return files[0].Text, nil
		},
	},
}

// TestRoundTripKeepsBehavior exports every definition, imports it again, and plays both side by side.
func TestRoundTripKeepsBehavior(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	played := map[string]int{}
	for name, src := range definitions(t) {
		before, err := parser.Parse(src)
		if err != nil {
			continue // it needs a file beside it, or shows a fault
		}
		events := eventsOf(t, src)
		for way, of := range ways {
			if strings.Contains(string(src.Text), of.without) {
				continue // it has other rules
			}
			t.Run(way+"/"+name, func(t *testing.T) {
				exported, err := of.export(src)
				require.NoError(t, err, "Export")
				text, err := of.back(exported)
				require.NoError(t, err, "Import, %s", exported)
				after, err := parser.Parse(statemachine.Source{File: "again.yaml", Text: text})
				require.NoError(t, err, "%s\n%s", text, exported)
				for seed := range uint64(seeds) {
					if different := walk(before.Definition, after.Definition, events, seed); different != "" {
						t.Fatalf("seed %d: %s\nbefore:\n%s\nafter:\n%s", seed, different, src.Text, text)
					}
				}
			})
			played[way]++
		}
	}
	for way := range ways {
		assert.GreaterOrEqual(t, played[way], 80, "definitions were played by way of %s, want at least 80", way)
	}
}

// TestRoundTripControl holds that the walk sees what is different.
func TestRoundTripControl(t *testing.T) {
	text := string(load(t, "testdata/definition/changed.yaml"))
	parse := func(text string) *statemachine.Definition {
		parser, err := statemachine.NewParser(statemachine.ParserOptions{})
		require.NoError(t, err)
		d, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(text)})
		require.NoError(t, err)
		return d.Definition
	}
	for old, replacement := range map[string]string{
		"reenter: true": "reenter: false", "svcPublic.n > 1": "svcPublic.n > 0", "1h: b": "2h: b", "n is": "n was", "n: 0": "n: 1", "svcPublic.n + 1": "svcPublic.n + 2", "target: b": "target: a",
		"workflow: one": "workflow: two", "onDone: a": "onDone: b",
	} {
		changed := strings.Replace(text, old, replacement, 1)
		require.NotEqual(t, text, changed, "no %q", old)
		events := eventsOf(t, statemachine.Source{File: "w.yaml", Text: []byte(text)})
		seen := ""
		a, b := parse(text), parse(changed)
		for seed := uint64(0); seed < seeds && seen == ""; seed++ {
			seen = walk(a, b, events, seed)
		}
		assert.NotEmpty(t, seen, "the walk does not see %q instead of %q", replacement, old)
	}
}

func eventsOf(t *testing.T, src statemachine.Source) []string {
	t.Helper()
	top, err := document.Parse(src.File, src.Text)
	require.NoError(t, err)
	names := tree.KeysOf(top.Field("events"))
	var visit func(n *document.Node)
	visit = func(n *document.Node) {
		for _, name := range tree.KeysOf(n.Field("on")) {
			names = append(names, strings.Replace(name, "*", "any", 1))
		}
		for _, f := range n.Fields {
			visit(f.Value)
		}
	}
	visit(top.Field("stateMachines"))
	slices.Sort(names)
	return slices.Compact(names)
}

// values are what the walk sends; the expressions of definitions fail on some of them, in both.
var values = []string{
	``, `{}`, `{"value":50}`, `{"value":200}`, `{"n":3,"floor":2,"degrees":30,"right":true,"text":"a","x":1,"y":2}`, `{"amount":5,"days":1,"button":1}`,
	`{"amount":5000,"days":9,"button":2,"comment":"c","items":[{"price":1}]}`, `{"svcPublic":{"a":1}}`, `{"customer":"x","status":"new"}`,
}

// seeds is how many walks two definitions take.
const seeds = 8

// walk plays the same random events to two definitions and returns the first difference.
func walk(a, b *statemachine.Definition, events []string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	value := func() data.Value { return data.Value(values[r.IntN(len(values))]) }
	creation := statemachine.Creation{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Caller: &statemachine.Caller{ID: "john", Roles: []string{"employee", "clerk"}}, Now: now}
	if seed%2 == 1 {
		creation.Public = value()
	}
	left, err := a.Create(creation)
	right, err2 := b.Create(creation)
	for step := 0; ; step++ {
		if one, two := shown(a, left, err), shown(b, right, err2); one != two {
			return fmt.Sprintf("step %d:\n%s\n%s", step, one, two)
		}
		if err != nil && step == 0 || step == 40 {
			return ""
		}
		before, before2 := left.Instance, right.Instance
		now = now.Add(time.Second)
		timers, children := before.Timers(), before.Children()
		switch {
		case len(timers) > 0 && r.IntN(3) == 0:
			next := timers[r.IntN(len(timers))]
			now = next.Due
			left, err = a.Fire(&before, next.ID, now)
			right, err2 = b.Fire(&before2, next.ID, now)
		case len(children) > 0 && r.IntN(3) == 0:
			child, failed, answer := children[r.IntN(len(children))].ID, r.IntN(2) == 0, data.Value(`{"output":1,"message":"m"}`)
			left, err = a.Callback(&before, child, failed, answer, now)
			right, err2 = b.Callback(&before2, child, failed, answer, now)
		case len(events) == 0:
			return ""
		default:
			e := statemachine.Event{Name: statemachine.EventName(events[r.IntN(len(events))]), Data: value(), Now: now, Caller: &statemachine.Caller{ID: []string{"john", "ann"}[r.IntN(2)], Roles: []string{"manager", "clerk", "employee"}[:r.IntN(4)]}}
			left, err = a.Step(&before, e)
			right, err2 = b.Step(&before2, e)
		}
		if err != nil && err2 != nil {
			if shown(a, left, err) != shown(b, right, err2) {
				return fmt.Sprintf("step %d: %v and %v", step, err, err2)
			}
			left, right, err, err2 = statemachine.Result{Instance: before}, statemachine.Result{Instance: before2}, nil, nil
		}
	}
}

// whereItStands is the place of an expression, which is elsewhere after a round trip.
var whereItStands = regexp.MustCompile(`[\w.-]+\.yaml:\d+: `)

func shown(d *statemachine.Definition, r statemachine.Result, err error) string {
	if err != nil {
		return whereItStands.ReplaceAllString(err.Error(), "")
	}
	out, err := json.Marshal(r.Deliveries)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v %q %s %q %s", r.Outcome, d.AppendRecord(nil, &r.Instance, statemachine.Chain{}, nil), r.Entry.AppendJSON(nil), r.Logs, out)
}
