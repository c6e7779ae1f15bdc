package xstate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

// reached is one line of a recording: what happened, and what the npm package xstate shows behind it
// (testdata/reach/reach.mjs).
type reached struct {
	Send    string          `json:"send"`
	Data    json.RawMessage `json:"data"`
	Wait    *int            `json:"wait"`
	Done    string          `json:"done"`
	Fail    string          `json:"fail"`
	Message string          `json:"message"`

	Value   any             `json:"value"`
	Context json.RawMessage `json:"context"`
	Tags    []string        `json:"tags"`
	Status  string          `json:"status"`
	Output  json.RawMessage `json:"output"` // of the machine, or what an actor has brought
}

func machines(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.events.json"))
	require.True(t, err == nil && len(files) != 0, "no machines in %s: %v", folder, err)
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], ".events.json")
	}
	return files
}

func load(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}

func recording(t *testing.T, name string) []reached {
	t.Helper()
	var lines []reached
	require.NoError(t, json.Unmarshal(load(t, name+".reached.json"), &lines))
	return lines
}

var importedOnce = map[string]File{}

func imported(t *testing.T, name string) File {
	t.Helper()
	if _, known := importedOnce[name]; !known {
		files, err := Import(filepath.Base(name)+".json", load(t, name+".json"))
		require.NoError(t, err, "Import")
		importedOnce[name] = files[0]
	}
	return importedOnce[name]
}

// TestImportedMachinesReachWhatXStateReaches plays each machine, 24 of them drawn at random, and compares with the recording
// of the npm package after each event: states, data, tags, and the output.
func TestImportedMachinesReachWhatXStateReaches(t *testing.T) {
	names := append(machines(t, "machine"), machines(t, "random")...)
	assert.GreaterOrEqual(t, len(names), 50, "machines")
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			file := imported(t, name)
			p := newPlay(t, file.Text)
			nodeOf := namesOf(t, load(t, name+".json"))
			for i, line := range recording(t, name) {
				p.take(line)
				for _, difference := range p.compare(line, nodeOf) {
					t.Errorf("line %d: %s", i+2, difference)
				}
			}
		})
	}
}

// TestReachControl holds that the comparison sees what is different: the rules of XState switched off, and recordings
// that say something else.
func TestReachControl(t *testing.T) {
	differences := func(t *testing.T, name, old, replacement string, change func(*reached)) int {
		name = filepath.Join("testdata", "machine", name)
		text := imported(t, name).Text
		require.True(t, bytes.Contains(text, []byte(old)), "%s does not have %q", text, old)
		p := newPlay(t, bytes.ReplaceAll(text, []byte(old), []byte(replacement)))
		nodeOf, found := namesOf(t, load(t, name+".json")), 0
		for _, line := range recording(t, name) {
			p.take(line)
			change(&line)
			found += len(p.compare(line, nodeOf))
		}
		return found
	}
	for _, c := range []struct{ name, machine, old, replacement string }{
		{"a region does not keep an event", "upload", "semantics: xstate", "semantics: native"},
		{"a transition between regions leaves the parallel state", "crossing", "semantics: xstate", "semantics: native"},
		{"the end is not the end", "final-output", "semantics: xstate", "semantics: native"},
		{"the end of a parallel state is not heard", "nested-parallel", "semantics: xstate", "semantics: native"},
		{"event data is applied", "counter", "apply: none", "apply: merge"},
		{"another time", "traffic-light", "'20000':", "'20001':"},
		{"another tag", "traffic-light", "tags: pedestrians", "tags: walkers"},
		{"another output", "checkout", "sold: true", "sold: false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.NotZero(t, differences(t, c.machine, c.old, c.replacement, func(*reached) {}), "the comparison found nothing")
		})
	}
	for name, change := range map[string]func(*reached){
		"states": func(l *reached) { l.Value = "elsewhere" }, "context": func(l *reached) { l.Context = []byte(`{"x":1}`) },
		"status": func(l *reached) { l.Status = "done" }, "tags": func(l *reached) { l.Tags = []string{"x"} },
	} {
		assert.NotZero(t, differences(t, "toggle", "id", "id", change), "a recording with other %s is taken", name)
	}
}

type play struct {
	t      *testing.T
	d      *statemachine.Definition
	in     statemachine.Instance
	tree   *document.Node
	now    time.Time
	output data.Value
}

func newPlay(t *testing.T, text []byte) *play {
	t.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	parsed, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: text})
	require.NoError(t, err, "parse %s", text)
	p := &play{t: t, d: parsed.Definition, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	p.tree, err = document.Parse("w.yaml", text)
	require.NoError(t, err)
	parent := &statemachine.Parent{Workflow: "above", Instance: "01ARZ3NDEKTSV4RRFFQ69G5FAA"}
	p.follow(p.d.Create(statemachine.Creation{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Caller: caller, Internal: true, Parent: parent, Now: p.now}))
	return p
}

var caller = &statemachine.Caller{ID: "john", Roles: []string{"clerk"}}

func (p *play) follow(r statemachine.Result, err error) {
	p.t.Helper()
	require.NoError(p.t, err)
	p.in = r.Instance
	for _, out := range r.Deliveries {
		if out.Notice != nil {
			p.output = out.Notice.Output
		}
	}
}

func (p *play) take(line reached) {
	p.t.Helper()
	switch {
	case line.Send != "":
		r, err := p.d.Step(&p.in, statemachine.Event{Name: statemachine.EventName(line.Send), Data: data.Value(line.Data), Caller: caller, Now: p.now})
		if !errors.Is(err, statemachine.ErrUnknownEvent) { // XState ignores what no state takes
			p.follow(r, err)
		}
	case line.Wait != nil:
		p.wait(time.Duration(*line.Wait) * time.Millisecond)
	case line.Done != "":
		p.tell(false, `{"output":`+string(line.Output)+`}`)
	case line.Fail != "":
		p.tell(true, `{"message":`+string(data.AppendString(nil, line.Message))+`}`)
	}
}

func (p *play) wait(d time.Duration) {
	p.t.Helper()
	for until := p.now.Add(d); ; {
		next := slices.MinFunc(append(p.in.Timers(), statemachine.Timer{Due: until.Add(1)}), func(a, b statemachine.Timer) int {
			return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID.Sequence, b.ID.Sequence), cmp.Compare(a.ID.Number, b.ID.Number))
		})
		if next.Due.After(until) {
			p.now = until
			return
		}
		if next.Due.After(p.now) {
			p.now = next.Due
		}
		p.follow(p.d.Fire(&p.in, next.ID, p.now))
	}
}

func (p *play) tell(failed bool, eventData string) {
	p.t.Helper()
	for _, c := range p.in.Children() {
		if c.Status == statemachine.ChildRuns {
			p.follow(p.d.Callback(&p.in, c.ID, failed, data.Value(eventData), p.now))
			return
		}
	}
	p.t.Fatal("no child runs")
}

// compare holds the instance against a line of a recording and returns what is different. nodeOf gives the node of each
// path of a state value.
func (p *play) compare(want reached, nodeOf map[string]string) (differences []string) {
	differ := func(text string, args ...any) { differences = append(differences, fmt.Sprintf(text, args...)) }
	wantNodes := leaves(nil, want.Value, "", nodeOf)
	active, got := p.active()
	if !slices.Equal(slices.Sorted(slices.Values(wantNodes)), got) {
		differ("states %v, XState has %v, which is %v", got, want.Value, wantNodes)
	}
	if !sameData(p.in.Public, want.Context) {
		differ("svcPublic %s, XState's context is %s", p.in.Public, want.Context)
	}
	if got := p.tags(active); !slices.Equal(got, want.Tags) {
		differ("tags %v, XState has %v", got, want.Tags)
	}
	done := want.Status == "done"
	if p.d.IsDone(&p.in) != done {
		differ("done %t, XState has %t", !done, done)
	}
	if done && len(want.Output) > 0 && want.Done == "" && !sameData(p.output, want.Output) {
		differ("output %s, XState has %s", p.output, want.Output)
	}
	return differences
}

// sameData compares values, and numbers as JavaScript has them.
func sameData(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	left, _ := json.Marshal(x)
	right, _ := json.Marshal(y)
	return bytes.Equal(left, right)
}

func leaves(out []string, value any, path string, nodeOf map[string]string) []string {
	switch v := value.(type) {
	case string:
		return append(out, nodeOf[path+"/"+v])
	case map[string]any:
		if len(v) == 0 {
			return append(out, nodeOf[path])
		}
		for key, inner := range v {
			out = leaves(out, inner, path+"/"+key, nodeOf)
		}
	}
	return out
}

func namesOf(t *testing.T, text []byte) map[string]string {
	t.Helper()
	tree, err := document.Parse("machine.json", text)
	require.NoError(t, err)
	r := &reader{byID: map[string]*state{}}
	if r.machine(tree); r.Err() != nil {
		t.Fatal(r.Err())
	}
	out := map[string]string{"": onlyState}
	for _, s := range r.states[1:] {
		path := ""
		for p := s; p.parent != nil; p = p.parent {
			path = "/" + p.key + path
		}
		out[path] = s.name
	}
	return out
}

// active are the nodes that are active, and those among them with no other inside.
func (p *play) active() (all, innermost []string) {
	for _, n := range p.d.Nodes {
		if !p.in.State.At.Active.Has(n.Index) {
			continue
		}
		all = append(all, string(n.ID))
		if n.IsLeaf() {
			innermost = append(innermost, string(n.ID))
		}
	}
	slices.Sort(innermost)
	return all, innermost
}

// tags are those of these nodes, which only the file has.
func (p *play) tags(active []string) (out []string) {
	var walk func(states *document.Node)
	walk = func(states *document.Node) {
		if states == nil {
			return
		}
		for _, f := range states.Fields {
			if slices.Contains(active, f.Key.Text) {
				for _, tag := range tree.Items(f.Value.Field("tags")) {
					out = append(out, tag.Text)
				}
			}
			walk(f.Value.Field("states"))
		}
	}
	walk(p.tree.Field("stateMachines"))
	slices.Sort(out)
	return slices.Compact(out)
}
