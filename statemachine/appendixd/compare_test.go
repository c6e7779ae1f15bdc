package appendixd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Tally counts what comparisons have seen.
type Tally struct {
	Charts  int // that were run
	Refused int // by the parser
	Steps   int // creates, events and timers, each taken by both
	Counts  map[string]int
	// NotStarted are instances whose create was undone by both.
	NotStarted int
}

func (t *Tally) count(features map[string]int) {
	for feature, n := range features {
		t.Counts[feature] += n
	}
}

// ErrRefused: the parser refused the definition. It is no difference, and should be rare.
var ErrRefused = errors.New("definition refused")

// firesMost bounds the timers that come in one pause: an after of no time can begin itself again.
const firesMost = 8

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Run takes all steps of a case with both, and counts them. The error wraps ErrRefused, or tells after which
// step the two disagree.
func Run(p *statemachine.Parser, c Case, tally *Tally) error {
	parsed, err := p.Parse(statemachine.Source{File: "random.yaml", Text: []byte(c.Definition)})
	if err != nil {
		tally.Refused++
		return fmt.Errorf("%w: %w\n%s", ErrRefused, err, c.Definition)
	}
	chart, err := Read(c.Definition)
	if err != nil {
		return err
	}
	chart.Mistake = c.Mistake
	if err := differs("events that callers can send", texts(parsed.EventNames()), chart.callersSend()); err != nil {
		return err
	}
	tally.Charts++
	before := tally.NotStarted
	for _, operations := range c.Runs {
		b := &both{definition: parsed.Definition, picture: parsed.Chart(), chart: chart, tally: tally}
		if err := b.run(operations); err != nil {
			return fmt.Errorf("%w\nsteps: %s\n%s", err, strings.Join(b.steps, "; "), c.Definition)
		}
		if tally.NotStarted > before {
			break // all would end there
		}
	}
	return nil
}

type both struct {
	definition *statemachine.Definition
	picture    *statemachine.Chart
	chart      *Chart
	tally      *Tally
	steps      []string

	now   int
	ours  statemachine.Instance
	other Instance
	// restless: a step was undone because it reached a bound. afterDone counts operations.
	restless  bool
	afterDone int
}

var caller = &statemachine.Caller{ID: "john"}

func (b *both) time() time.Time { return begin.Add(time.Duration(b.now) * time.Millisecond) }

func (b *both) run(operations []Operation) error {
	b.steps = append(b.steps, "create")
	next, report := b.chart.Interpret(b.now)
	if err := b.compare("", next, report, func() (statemachine.Result, error) {
		return b.definition.Create(statemachine.Creation{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Caller: caller, Now: b.time()})
	}); err != nil {
		return err
	}
	if report.Outcome == Undone {
		b.tally.NotStarted++
		return nil
	}
	for _, o := range operations {
		if err := b.operate(o); err != nil || b.isOver() {
			return err
		}
	}
	return nil
}

// isOver reports whether the rest of a run would show little: an instance that is done takes nothing, and one that does not
// come to rest mostly does not come to rest with the next event either, which takes long.
func (b *both) isOver() bool {
	if b.chart.IsDone(b.other) {
		b.afterDone++
	}
	return b.restless || b.afterDone > 3
}

func (b *both) operate(o Operation) error {
	if o.Event == "" {
		return b.pause(o.Pause)
	}
	b.now++
	b.steps = append(b.steps, o.Event)
	event := statemachine.Event{Name: statemachine.EventName(o.Event), Caller: caller, Now: b.time()}
	if o.Data != nil {
		b.steps[len(b.steps)-1] += fmt.Sprintf(" {n: %d}", *o.Data)
		event.Data = data.Value(fmt.Sprintf(`{"n":%d}`, *o.Data))
	}
	next, report := b.chart.Send(b.other, Event{Name: o.Event, Data: o.Data}, b.now)
	return b.compare(o.Event, next, report, func() (statemachine.Result, error) { return b.definition.Step(&b.ours, event) })
}

// pause fires what becomes due, each timer at its own time, and drops those whose step is undone.
func (b *both) pause(milliseconds int) error {
	until := b.now + milliseconds
	for range firesMost {
		timer, waits := firstTimer(&b.ours, begin.Add(time.Duration(until)*time.Millisecond))
		position, otherWaits := b.chart.NextTimer(b.other, until)
		if waits != otherWaits {
			return fmt.Errorf("a timer is due: ours %t, Appendix D %t", waits, otherWaits)
		}
		if !waits {
			break
		}
		b.now = max(b.now, int(timer.Due.Sub(begin).Milliseconds()))
		b.steps = append(b.steps, string(timer.Event)+" comes")
		name := b.other.Timers[position].Event.Name
		if name != string(timer.Event) {
			return fmt.Errorf("the timer that comes first: ours %s, Appendix D %s", timer.Event, name)
		}
		next, report := b.chart.Fire(b.other, position, b.now)
		var dropFailed error
		if err := b.compare(name, next, report, func() (statemachine.Result, error) {
			result, err := b.definition.Fire(&b.ours, timer.ID, b.time())
			if errors.Is(err, statemachine.ErrExecution) {
				result.Instance, dropFailed = b.definition.Drop(&b.ours, timer.ID)
			}
			return result, cmp.Or(dropFailed, err)
		}); err != nil {
			return err
		}
	}
	b.now = until
	return nil
}

// firstTimer is the timer that comes first by a time (statemachine/DEFINITION.md, "Timers").
func firstTimer(in *statemachine.Instance, until time.Time) (first statemachine.Timer, ok bool) {
	timers := slices.DeleteFunc(in.Timers(), func(t statemachine.Timer) bool { return t.Due.After(until) })
	if len(timers) == 0 {
		return first, false
	}
	return slices.MinFunc(timers, func(a, b statemachine.Timer) int {
		return cmp.Or(a.Due.Compare(b.Due), compareIDs(a, b))
	}), true
}

func compareIDs(a, b statemachine.Timer) int {
	return cmp.Or(cmp.Compare(a.ID.Sequence, b.ID.Sequence), cmp.Compare(a.ID.Number, b.ID.Number))
}

// compare holds what a step gives against what it gives by Appendix D, and goes on with both.
func (b *both) compare(event string, next Instance, report Report, step func() (statemachine.Result, error)) error {
	b.tally.Steps++
	b.tally.count(report.Counts)
	before := positionsOf(b.chart, b.other)
	b.other, b.restless = next, report.AtBound
	result, outcome, err := b.twice(step)
	if err != nil {
		return err
	}
	if outcome != report.Outcome {
		return fmt.Errorf("outcome: ours %v, Appendix D %v %s", outcome, report.Outcome, report.Why)
	}
	if outcome == Undone && event == "" {
		return nil
	}
	if result.Instance.ID != "" {
		b.ours = result.Instance
	}
	if outcome == Moved || outcome == Recorded {
		if result.Entry.Attempt != (outcome == Recorded) {
			return fmt.Errorf("the entry is one of an event that nothing took: ours %t", result.Entry.Attempt)
		}
		if err := b.compareEntry(&result.Entry, event, before); err != nil {
			return err
		}
	}
	if outcome == Undone || outcome == Rejected {
		report.Log = nil
	}
	return cmp.Or(differs("log", result.Logs, report.Log), b.compareInstances())
}

// twice holds that a step leaves its argument as it is, and gives the same bytes again (persistence/PROMISES.md, "P17").
func (b *both) twice(step func() (statemachine.Result, error)) (result statemachine.Result, outcome string, err error) {
	seen := func(r statemachine.Result, err error) string {
		return fmt.Sprintf("%q %q %q %v", b.record(&r.Instance), r.Entry.AppendJSON(nil), r.Logs, err)
	}
	before := b.record(&b.ours)
	result, failed := step()
	if outcome, err = outcomeOf(result, failed); err != nil {
		return result, "", err
	}
	first := seen(result, failed)
	if again := seen(step()); again != first {
		return result, "", fmt.Errorf("the same step again:\n%s\n%s", first, again)
	}
	if after := b.record(&b.ours); !bytes.Equal(before, after) {
		return result, "", fmt.Errorf("the argument of the step has changed:\n%q\n%q", before, after)
	}
	return result, outcome, nil
}

func (b *both) record(in *statemachine.Instance) []byte {
	if in.ID == "" {
		return nil
	}
	return b.definition.AppendRecord(nil, in, statemachine.Chain{}, nil)
}

// outcomeOf is the outcome in the words of appendixd. An error is one that a random chart cannot have.
func outcomeOf(result statemachine.Result, err error) (string, error) {
	switch {
	case errors.Is(err, statemachine.ErrExecution):
		return Undone, nil
	case errors.Is(err, statemachine.ErrRejected):
		return Rejected, nil
	case err != nil:
		return "", fmt.Errorf("unexpected error: %w", err)
	}
	return map[statemachine.Outcome]string{statemachine.Moved: Moved, statemachine.Recorded: Recorded, statemachine.Ignored: Ignored}[result.Outcome], nil
}

func differs(what string, ours, other []string) error {
	if slices.Equal(ours, other) {
		return nil
	}
	return fmt.Errorf("%s:\n  ours       %q\n  Appendix D %q", what, ours, other)
}

func (b *both) compareEntry(entry *statemachine.Entry, event string, before []string) error {
	if string(entry.Event) != event {
		return fmt.Errorf("event of the entry: %q, want %q", entry.Event, event)
	}
	nodes := func(positions []string) []string {
		var out []string
		for _, p := range positions {
			_, node, _ := strings.Cut(p, ".")
			out = append(out, node)
		}
		return out
	}
	if event == "" {
		before = slices.Repeat([]string{".Start"}, len(b.chart.Root.Children))
	}
	if err := differs("start of the entry", texts(entry.Start), nodes(before)); err != nil {
		return err
	}
	if of, states := b.definition.StatesOf(entry.AppendJSON(nil)), b.definition.States(&b.ours); !bytes.Equal(of, states) {
		return fmt.Errorf("states of the entry: %s, of the instance: %s", of, states)
	}
	return cmp.Or(b.findable(b.definition.PositionsNamed(entry.End)), differs("end of the entry", texts(entry.End), nodes(positionsOf(b.chart, b.other))))
}

// callersSend are the events that a transition takes by its name, or that are declared, without those of the machine.
func (c *Chart) callersSend() (names []string) {
	for _, e := range c.Events {
		names = append(names, e.Event)
	}
	for _, s := range c.States {
		for _, t := range s.Transitions {
			if t.Event != "" && !strings.HasSuffix(t.Event, "*") && !strings.HasPrefix(t.Event, "done.") && t.Event != errorExecution {
				names = append(names, t.Event)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func texts[T ~string](list []T) []string {
	var out []string
	for _, text := range list {
		out = append(out, string(text))
	}
	return out
}

// findable holds that a picture and a list of all that instances can stand at have where one stands.
func (b *both) findable(positions []statemachine.Position) error {
	leaves := b.definition.LeafNodes()
	for _, p := range positions {
		i, ok := b.picture.Node(p)
		if !ok || b.picture.Nodes[i].ID != p.Node || !b.picture.Contains(b.picture.Machine(i), i) {
			return fmt.Errorf("the picture has not the node of %v", p)
		}
		if !slices.ContainsFunc(leaves, func(leaf statemachine.NodePresentation) bool { return leaf.Position == p }) {
			return fmt.Errorf("instances cannot stand at %v", p)
		}
	}
	return nil
}

func (b *both) compareInstances() error {
	record, err := statemachine.ParseRecord(b.record(&b.ours))
	if err != nil {
		return err
	}
	if b.ours, err = b.definition.Restore(b.ours.ID, record); err != nil {
		return err
	}
	var positions, active, history []string
	for _, p := range b.definition.Positions(&b.ours) {
		positions = append(positions, string(p.Machine)+"."+string(p.Node))
	}
	nodes := b.definition.Nodes
	for _, n := range nodes {
		if n.Parent != nil && b.ours.State.At.Active.Has(n.Index) {
			active = append(active, string(n.ID))
		}
	}
	for _, m := range b.ours.State.Memory {
		line := string(nodes[m.History].Machine.ID) + "." + string(nodes[m.History].ID) + ":"
		for _, n := range m.Nodes {
			line += " " + string(nodes[n].ID)
		}
		history = append(history, line)
	}
	slices.Sort(history)
	return differs("instance", []string{
		fmt.Sprint("positions ", positions), fmt.Sprint("active ", active), fmt.Sprint("variables ", string(b.ours.Public)),
		fmt.Sprint("timers ", timersOf(&b.ours)), fmt.Sprint("history ", history), fmt.Sprint("done ", b.definition.IsDone(&b.ours)),
		fmt.Sprint("last ", b.ours.UpdatedAt.Sub(begin).Milliseconds()),
	}, []string{
		fmt.Sprint("positions ", positionsOf(b.chart, b.other)), fmt.Sprint("active ", ids(b.other.Configuration)), fmt.Sprint("variables ", object(b.chart, b.other.Variables)),
		fmt.Sprint("timers ", b.otherTimers()), fmt.Sprint("history ", b.otherHistory()), fmt.Sprint("done ", b.chart.IsDone(b.other)), fmt.Sprint("last ", b.other.Last),
	})
}

// object writes variables as svcPublic has them: in the order of the chart.
func object(c *Chart, values map[string]int) string {
	var members []string
	for _, name := range c.Variables {
		members = append(members, fmt.Sprintf("%q:%d", name, values[name]))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// positionsOf is what statemachine/DEFINITION.md, "Positions", says of a configuration.
func positionsOf(c *Chart, in Instance) []string {
	if in.Configuration == nil {
		return nil
	}
	var out []string
	var visit func(region *State)
	visit = func(region *State) {
		s := region
		for s.Kind == Compound {
			k := slices.IndexFunc(s.Children, func(c *State) bool { return slices.Contains(in.Configuration, c) })
			if k < 0 {
				out = append(out, region.ID+".nowhere")
				return
			}
			s = s.Children[k]
		}
		out = append(out, region.ID+"."+s.ID)
		if s.Kind == Parallel {
			for _, r := range s.Children {
				visit(r)
			}
		}
	}
	for _, m := range c.Root.Children {
		visit(m)
	}
	return out
}

func timersOf(in *statemachine.Instance) []string {
	var out []string
	for _, t := range slices.SortedFunc(slices.Values(in.Timers()), compareIDs) {
		at := ""
		if t.At.Node != "" {
			at = " of " + string(t.At.Machine) + "." + string(t.At.Node)
		}
		out = append(out, fmt.Sprintf("%s at %d%s", t.Event, t.Due.Sub(begin).Milliseconds(), at))
	}
	return out
}

func (b *both) otherTimers() []string {
	var out []string
	for _, t := range b.other.Timers {
		at := ""
		if t.After != nil {
			at = " of " + t.After.State.Machine().ID + "." + t.After.State.ID
		}
		out = append(out, fmt.Sprintf("%s at %d%s", t.Event.Name, t.Due, at))
	}
	return out
}

func (b *both) otherHistory() []string {
	var out []string
	for h, states := range maps.All(b.other.History) {
		line := h.Machine().ID + "." + h.ID + ":"
		for _, s := range states {
			line += " " + s.ID
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}
