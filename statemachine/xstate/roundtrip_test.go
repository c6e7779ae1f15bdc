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
	"troupe/statemachine/xstate/internal/tree"
)

// definitions returns the definitions of the repository by name: the example home's, those of the core's tests, those
// of this package, and what its machines become.
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

// TestRoundTripKeepsBehavior exports every definition, imports it again, and plays both side by side.
func TestRoundTripKeepsBehavior(t *testing.T) {
	played := 0
	for name, src := range definitions(t) {
		parser, err := newParser()
		require.NoError(t, err)
		before, err := parser.Parse(src)
		if err != nil || strings.Contains(string(src.Text), "semantics: scxml") {
			continue // it needs a file beside it, or shows a fault, or has the rules of SCXML
		}
		t.Run(name, func(t *testing.T) {
			machine, _, err := Export(src)
			require.NoError(t, err, "Export")
			files, err := Import("again.json", machine)
			require.NoError(t, err, "Import, %s", machine)
			after, err := parser.Parse(statemachine.Source{File: "again.yaml", Text: files[0].Text})
			require.NoError(t, err)
			for seed := range uint64(20) {
				if different := walk(before.Definition, after.Definition, eventsOf(t, src), seed); different != "" {
					t.Fatalf("seed %d: %s\nbefore:\n%s\nafter:\n%s", seed, different, src.Text, files[0].Text)
				}
			}
		})
		played++
	}
	assert.GreaterOrEqual(t, played, 80, "definitions were played, want at least 80")
}

// TestRoundTripControl holds that the walk sees another guard, another target and another delay.
func TestRoundTripControl(t *testing.T) {
	file := imported(t, "testdata/machine/vending-machine")
	parser, err := newParser()
	require.NoError(t, err)
	src := statemachine.Source{File: "w.yaml", Text: file.Text}
	before, err := parser.Parse(src)
	require.NoError(t, err)
	for old, replacement := range map[string]string{"target: idle": "target: vending", "svcPublic.deposited > 0": "svcPublic.deposited > -9999", "'500':": "501:"} {
		text := strings.Replace(string(file.Text), old, replacement, 1)
		after, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(text)})
		require.True(t, err == nil && text != string(file.Text), "%s: %v", old, err)
		assert.True(t, slices.ContainsFunc(make([]struct{}, 40), func() func(struct{}) bool {
			seed := uint64(0)
			return func(struct{}) bool {
				seed++
				return walk(before.Definition, after.Definition, eventsOf(t, src), seed) != ""
			}
		}()), "the walk does not see %q instead of %q", replacement, old)
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
var values = []string{``, `{}`, `{"value":50}`, `{"value":200}`, `{"n":3,"floor":2,"degrees":30,"right":true,"text":"a","x":1,"y":2}`, `{"amount":5,"days":1,"button":1}`, `{"amount":5000,"days":9,"button":2,"comment":"c","items":[{"price":1}]}`}

// walk plays two definitions with the same random events and returns the first difference.
func walk(a, b *statemachine.Definition, events []string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := statemachine.Creation{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Caller: &statemachine.Caller{ID: "john", Roles: []string{"employee", "clerk"}}, Now: now}
	left, err := a.Create(c)
	right, err2 := b.Create(c)
	for step := 0; ; step++ {
		if one, two := shown(a, left, err), shown(b, right, err2); one != two {
			return fmt.Sprintf("step %d:\n%s\n%s", step, one, two)
		}
		if err != nil && step == 0 || step == 40 {
			return ""
		}
		before, before2 := left.Instance, right.Instance
		now = now.Add(time.Second)
		if timers := left.Instance.Timers(); len(timers) > 0 && r.IntN(3) == 0 {
			next := timers[r.IntN(len(timers))]
			now = next.Due
			left, err = a.Fire(&left.Instance, next.ID, now)
			right, err2 = b.Fire(&right.Instance, next.ID, now)
		} else {
			if len(events) == 0 {
				return ""
			}
			e := statemachine.Event{Name: statemachine.EventName(events[r.IntN(len(events))]), Data: data.Value(values[r.IntN(len(values))]), Now: now, Caller: &statemachine.Caller{ID: []string{"john", "ann"}[r.IntN(2)], Roles: []string{"manager", "clerk", "employee"}[:r.IntN(4)]}}
			left, err = a.Step(&left.Instance, e)
			right, err2 = b.Step(&right.Instance, e)
		}
		if err != nil && err2 != nil {
			if whereItStands.ReplaceAllString(err.Error(), "") != whereItStands.ReplaceAllString(err2.Error(), "") {
				return fmt.Sprintf("step %d: %v and %v", step, err, err2)
			}
			left, right, err, err2 = statemachine.Result{Instance: before}, statemachine.Result{Instance: before2}, nil, nil
		}
	}
}

var whereItStands = regexp.MustCompile(`[\w.-]+\.yaml:\d+: `)

func shown(d *statemachine.Definition, r statemachine.Result, err error) string {
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	out, err := json.Marshal(r.Deliveries)
	if err != nil {
		return err.Error()
	}
	fmt.Fprintf(&b, "%v %s %s %s %s %v %v %s %t", r.Outcome, d.States(&r.Instance), r.Instance.Public, r.Instance.Private, r.Instance.Redirect, r.Entry.Event, r.Logs, out, d.IsDone(&r.Instance))
	for _, t := range r.Instance.Timers() {
		fmt.Fprintf(&b, " timer %v %v", t.ID, t.Due)
	}
	return b.String()
}
