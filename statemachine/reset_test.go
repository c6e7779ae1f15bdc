package statemachine

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/record"
)

// TestResetIsWhatItWas walks through the definitions of testdata/scenario, and resets the instance again and again to what it was
// after one of its steps: it is that then, with exactly what its active nodes begin, begun in this entry, and goes on as it did then.
func TestResetIsWhatItWas(t *testing.T) {
	done := map[string]int{}
	for _, file := range []string{"child", "history", "job", "task", "timer", "parallel", "region", "imported_child", "semantics_xstate", "migrate"} {
		ds := chartsOf(t, file)
		rapid.Check(t, func(t *rapid.T) {
			d := rapid.SampledFrom(ds).Draw(t, "definition")
			w := &resetWalk{T: t, d: d, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), done: done}
			parent := &Parent{Workflow: "above", Instance: "01ARZ3NDEKTSV4RRFFQ69G5FAA", Child: ElementID{Sequence: 7}, Depth: 1}
			if rapid.Bool().Draw(t, "alone") {
				parent = nil
			}
			r, err := d.Create(Creation{ID: "i", Caller: w.caller(), Internal: true, Parent: parent, Now: w.now})
			if err != nil {
				return
			}
			w.was = append(w.was, r.Instance)
			for range rapid.IntRange(5, 30).Draw(t, "steps") {
				if w.now = w.now.Add(time.Minute); rapid.IntRange(0, 3).Draw(t, "resets") == 0 {
					w.reset()
				} else {
					w.step()
				}
			}
		})
	}
	for _, what := range []string{"reset", "ended", "timer", "task", "job", "child", "cancelled", "memory", "notice"} {
		assert.Positive(t, done[what], "%s: no reset met that", what)
	}
}

func chartsOf(t *testing.T, file string) (ds []*Definition) {
	p := newParser(t)
	for _, text := range scripts(t, "testdata/scenario/"+file+".txt") {
		if parsed, err := p.Parse(Source{File: "w.yaml", Text: []byte(text)}); err == nil {
			ds = append(ds, parsed.Definition)
		}
	}
	require.NotEmpty(t, ds, file)
	return ds
}

type resetWalk struct {
	*rapid.T
	d    *Definition
	was  []Instance // after each entry
	now  time.Time
	done map[string]int
}

func (w *resetWalk) caller() *Caller {
	return &Caller{ID: rapid.SampledFrom([]string{"john", "mary"}).Draw(w.T, "user"), Roles: []string{"buyer", "clerk", "manager"}, OverridesClaims: true}
}

func (w *resetWalk) last() *Instance { return &w.was[len(w.was)-1] }

// step has something happen to the instance.
func (w *resetWalk) step() {
	in := w.last()
	var r Result
	var err error
	switch kind := rapid.IntRange(0, 9).Draw(w.T, "kind"); {
	case kind == 0 && len(in.State.Timers) > 0:
		r, err = w.d.Fire(in, rapid.SampledFrom(in.State.Timers).Draw(w.T, "timer").ID, w.now)
	case kind == 1 && len(in.State.Jobs) > 0:
		r, err = w.d.Callback(in, rapid.SampledFrom(in.State.Jobs).Draw(w.T, "job").ID, rapid.Bool().Draw(w.T, "failed"), data.Value(`{"output":{"n":1}}`), w.now)
	case kind == 2 && len(in.State.Children) > 0:
		r, err = w.d.Callback(in, rapid.SampledFrom(in.State.Children).Draw(w.T, "child").ID, rapid.Bool().Draw(w.T, "failed"), data.Value(`{"output":{"n":1}}`), w.now)
	case kind == 3 && rapid.Bool().Draw(w.T, "cancels"):
		r, err = w.d.Cancel(in, "john", w.now)
	default:
		r, err = w.d.Step(in, w.event())
	}
	if err == nil && r.Outcome != Ignored {
		w.was = append(w.was, r.Instance)
	}
}

func (w *resetWalk) event() Event {
	names := []string{"none"}
	for name := range w.d.Declared.Exact {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return Event{Name: EventName(rapid.SampledFrom(names).Draw(w.T, "event")), Data: data.Value(`{}`), Caller: w.caller(), Now: w.now}
}

func (w *resetWalk) reset() {
	in := w.last()
	to := rapid.IntRange(1, len(w.was)).Draw(w.T, "to")
	then := w.was[to-1]
	before, past := w.d.AppendRecord(nil, in, Chain{}, nil), w.d.AppendRecord(nil, &then, Chain{}, nil)
	r, err := w.d.Reset(in, Reset{Then: &then, To: uint64(to), Reason: `"why"`, Caller: w.caller(), Now: w.now})
	require.Equal(w.T, string(before), string(w.d.AppendRecord(nil, in, Chain{}, nil)), "Reset changed its argument")
	require.Equal(w.T, string(past), string(w.d.AppendRecord(nil, &then, Chain{}, nil)), "Reset changed what the instance was")
	if err != nil {
		require.ErrorIs(w.T, err, ErrExecution)
		return
	}
	next := r.Instance
	checkWhole(w.T, w.d, &next)
	require.Equal(w.T, in.Sequence+1, next.Sequence)
	require.Equal(w.T, in.State.At.End, r.Entry.Start)
	require.Equal(w.T, then.State.At.End, r.Entry.End)
	require.JSONEq(w.T, `{"to":`+strconv.Itoa(to)+`,"reason":"\"why\""}`, string(r.Entry.Data))
	require.Equal(w.T, string(w.d.States(&then)), string(w.d.States(&next)))
	require.Equal(w.T, then.State.Memory, next.State.Memory)
	require.Equal(w.T, then.State.Ended, next.State.Ended)
	require.Equal(w.T, in.State.Parent, next.State.Parent)
	if w.d.Semantics != chart.SCXMLSemantics { // an invoke may write its id
		require.Equal(w.T, string(then.Public), string(next.Public))
		require.Equal(w.T, string(then.Private), string(next.Private))
	}
	w.elements(in, &then, &r)
	w.count(in, &next)
	w.was = append(w.was, next)
	if rapid.Bool().Draw(w.T, "goes on") {
		w.goesOn(&then, &next)
	}
}

// elements compares what the instance waits for with what its active nodes begin.
func (w *resetWalk) elements(in, then *Instance, r *Result) {
	next := &r.Instance
	var afters []*chart.After
	var tasks []*chart.Node
	var invokes []*chart.Invoke
	if !then.State.IsOver() {
		for k, n := range w.d.Nodes {
			if k > 0 && next.State.At.Active.Has(k) {
				afters, invokes = append(afters, n.After...), append(invokes, n.Invoke...)
				if n.Task != nil {
					tasks = append(tasks, n)
				}
			}
		}
	}
	starts := 0
	for _, out := range r.Deliveries {
		if out.Start != nil {
			starts++
		}
	}
	var begun []ElementID
	var gotAfters []*chart.After
	for _, timer := range next.State.Timers {
		if begun = append(begun, timer.ID); timer.After != nil {
			gotAfters = append(gotAfters, timer.After)
		} else {
			require.Equal(w.T, chart.TaskOverdue, timer.Event, "a message that was sent with a delay is sent again")
		}
	}
	var gotTasks []*chart.Node
	for _, task := range next.State.Tasks {
		begun, gotTasks = append(begun, task.ID), append(gotTasks, task.Node)
	}
	var gotInvokes []*chart.Invoke
	for _, job := range next.State.Jobs {
		begun, gotInvokes = append(begun, job.ID), append(gotInvokes, job.Invoke)
	}
	running := 0
	for _, c := range next.State.Children {
		if c.Status == ChildRuns {
			begun, gotInvokes = append(begun, c.ID), append(gotInvokes, c.Invoke)
			running++
		}
	}
	require.ElementsMatch(w.T, afters, gotAfters)
	require.ElementsMatch(w.T, tasks, gotTasks)
	require.ElementsMatch(w.T, invokes, gotInvokes)
	for _, id := range begun {
		require.Equal(w.T, next.Sequence, id.Sequence)
	}
	require.Equal(w.T, running, starts)
	runs := func(c record.ChildState) bool { return c.Status == ChildRuns }
	for _, c := range slices.DeleteFunc(slices.Clone(in.State.Children), func(c record.ChildState) bool { return !runs(c) }) {
		require.True(w.T, slices.ContainsFunc(r.Deliveries, func(out Delivery) bool { return out.End != nil && out.End.ID == c.ID }), "child %v goes on", c.ID)
		w.done["cancelled"]++
	}
	for _, out := range r.Deliveries {
		require.True(w.T, out.Start != nil || out.End != nil || out.Notice != nil, "it sends %+v", out)
		if out.Notice != nil {
			require.False(w.T, in.State.IsOver(), "the parent is told twice")
			w.done["notice"]++
		}
	}
}

func (w *resetWalk) count(in, next *Instance) {
	for what, has := range map[string]bool{
		"reset": true, "ended": in.State.IsOver() && !next.State.IsOver(), "timer": len(next.State.Timers) > 0, "task": len(next.State.Tasks) > 0,
		"job": len(next.State.Jobs) > 0, "child": len(next.State.Children) > 0, "memory": len(next.State.Memory) > 0,
	} {
		if has {
			w.done[what]++
		}
	}
}

// goesOn sends one event to both.
func (w *resetWalk) goesOn(then, next *Instance) {
	e := w.event()
	one, err := w.d.Step(then, e)
	other, again := w.d.Step(next, e)
	require.Equal(w.T, err == nil, again == nil, "%v, %v", err, again)
	if err == nil && w.d.Semantics != chart.SCXMLSemantics {
		require.Equal(w.T, one.Outcome, other.Outcome)
		require.Equal(w.T, string(w.d.States(&one.Instance)), string(w.d.States(&other.Instance)))
		require.Equal(w.T, string(one.Instance.Public), string(other.Instance.Public))
	}
}

func TestResetOfWhatCannotBeginAgain(t *testing.T) {
	d := parseChart(t, `
id: w
stateMachines:
  m:
    initial: a
    states:
      a: {on: {go: b}}
      b: {after: {'${event.data.delay}': c}, on: {go: a}}
      c: {type: final}
`)
	first := started(t, d)
	r, err := d.Step(&first.Instance, Event{Name: "go", Data: data.Value(`{"delay":"PT1H"}`), Caller: &Caller{ID: "u"}, Now: time.Unix(1, 0)})
	require.NoError(t, err)
	_, err = d.Reset(&r.Instance, Reset{Then: &r.Instance, To: 2, Reason: "why", Caller: &Caller{ID: "u"}, Now: time.Unix(2, 0)})
	require.ErrorIs(t, err, ErrExecution)
	assert.ErrorContains(t, err, "after: expression failed: no such key: delay")
}

// TestAChildOfBeforeIsNotHeard, with the rules of SCXML either, by which one that was cancelled may still say that it is done.
func TestAChildOfBeforeIsNotHeard(t *testing.T) {
	p := newParser(t)
	parsed, err := p.Parse(Source{File: "w.yaml", Text: []byte(`
id: top
semantics: scxml
stateMachines: {main: {initial: a, states: {a: {invoke: {workflow: child, id: kid}, on: {done.invoke.kid: b}}, b: {type: final}}}}
`)})
	require.NoError(t, err)
	d, now, john := parsed.Definition, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), &Caller{ID: "john"}
	before, err := d.Create(Creation{ID: "i", Caller: john, Internal: true, Now: now})
	require.NoError(t, err)
	after, err := d.Reset(&before.Instance, Reset{Then: &before.Instance, To: 1, Reason: "again", Caller: john, Now: now})
	require.NoError(t, err)
	_, err = d.Callback(&after.Instance, before.Instance.State.Children[0].ID, false, data.Value(`{"output":1}`), now)
	require.ErrorIs(t, err, ErrNoChild)
}
