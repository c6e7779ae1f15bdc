package comparison

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/statemachine"
	"troupe/statemachine/appendixd"
	"troupe/statemachine/data"
)

// Tally counts what comparisons have seen.
type Tally struct {
	Charts  int // that were run
	Refused int // by the parser
	Steps   int // creates, events and timers, each taken by both
	Counts  appendixd.Counts
	// NotStarted are instances whose create was undone by both.
	NotStarted int
}

// Add adds another tally.
func (t *Tally) Add(other Tally) {
	t.Charts += other.Charts
	t.Refused += other.Refused
	t.Steps += other.Steps
	t.NotStarted += other.NotStarted
	t.Counts.Add(other.Counts)
}

// Difference is a step after which the two disagree.
type Difference struct {
	Definition string
	Steps      []string // what was done, the step of the difference last
	What       string
}

func (d *Difference) Error() string {
	return fmt.Sprintf("%s\nsteps: %s\n%s", d.What, strings.Join(d.Steps, "; "), d.Definition)
}

// ErrRefused: the parser refused the definition. It is no difference, and should be rare.
var ErrRefused = errors.New("definition refused")

// firesMost bounds the timers that come in one pause: an after of no time can begin itself again.
const firesMost = 8

// begin is when the first instance is created; appendixd counts milliseconds from it.
var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Run takes all steps of a case with both. The error is a *Difference, or wraps ErrRefused.
func Run(p *statemachine.Parser, c Case) (Tally, error) {
	text := Definition(c.Chart)
	parsed, err := p.Parse(statemachine.Source{File: "random.yaml", Text: []byte(text)})
	if err != nil {
		return Tally{Refused: 1}, fmt.Errorf("%w: %w\n%s", ErrRefused, err, text)
	}
	tally := Tally{Charts: 1}
	for _, operations := range c.Runs {
		b := &both{definition: parsed.Definition, chart: c.Chart, tally: &tally}
		if err := b.run(operations); err != nil {
			return tally, &Difference{Definition: text, Steps: b.steps, What: err.Error()}
		}
		if tally.NotStarted > 0 {
			break // all would end there
		}
	}
	return tally, nil
}

// both is one instance, taken by both.
type both struct {
	definition *statemachine.Definition
	chart      *appendixd.Chart
	tally      *Tally
	steps      []string

	now   int
	ours  statemachine.Instance
	other appendixd.Instance
	// restless: a step was undone because it reached a bound. afterDone counts operations.
	restless  bool
	afterDone int
}

var caller = &statemachine.Caller{ID: "john"}

func (b *both) time() time.Time { return begin.Add(time.Duration(b.now) * time.Millisecond) }

func (b *both) run(operations []Operation) error {
	b.steps = append(b.steps, "create")
	result, err := b.definition.Create(statemachine.Creation{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Caller: caller, Now: b.time()})
	next, report := b.chart.Interpret(b.now)
	if err := b.compare("", result, err, next, report); err != nil {
		return err
	}
	if report.Outcome == appendixd.Undone {
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
	result, err := b.definition.Step(&b.ours, event)
	next, report := b.chart.Send(b.other, appendixd.Event{Name: o.Event, Data: o.Data}, b.now)
	return b.compare(o.Event, result, err, next, report)
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
		result, err := b.definition.Fire(&b.ours, timer.ID, b.time())
		next, report := b.chart.Fire(b.other, position, b.now)
		if errors.Is(err, statemachine.ErrExecution) {
			dropped, failed := b.definition.Drop(&b.ours, timer.ID)
			if failed != nil {
				return failed
			}
			b.ours = dropped
		}
		if err := b.compare(name, result, err, next, report); err != nil {
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
