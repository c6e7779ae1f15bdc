package comparison

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/appendixd"
	"troupe/statemachine/packed"
)

// compare holds what a step gave against what it gives by Appendix D, and goes on with both.
func (b *both) compare(event string, result statemachine.Result, err error, next appendixd.Instance, report appendixd.Report) error {
	b.tally.Steps++
	b.tally.Counts.Add(report.Counts)
	before := positionsOf(b.chart, b.other)
	b.other, b.restless = next, report.AtBound
	outcome, err := outcomeOf(result, err)
	if err != nil {
		return err
	}
	if outcome != report.Outcome {
		return fmt.Errorf("outcome: ours %v, Appendix D %v %s", outcome, report.Outcome, report.Why)
	}
	if outcome == appendixd.Undone && event == "" {
		return nil
	}
	if outcome == appendixd.Undone || outcome == appendixd.Rejected {
		return b.compareInstances()
	}
	b.ours = result.Instance
	if err := differs("log", result.Logs, report.Log); err != nil {
		return err
	}
	if outcome != appendixd.Ignored {
		if err := b.compareEntry(&result.Entry, event, before); err != nil {
			return err
		}
	}
	return b.compareInstances()
}

// outcomeOf is the outcome in the words of appendixd. An error is one that a random chart cannot have.
func outcomeOf(result statemachine.Result, err error) (appendixd.Outcome, error) {
	switch {
	case errors.Is(err, statemachine.ErrExecution):
		return appendixd.Undone, nil
	case errors.Is(err, statemachine.ErrRejected):
		return appendixd.Rejected, nil
	case err != nil:
		return 0, fmt.Errorf("unexpected error: %w", err)
	}
	return map[statemachine.Outcome]appendixd.Outcome{
		statemachine.Moved: appendixd.Moved, statemachine.Recorded: appendixd.Recorded, statemachine.Ignored: appendixd.Ignored,
	}[result.Outcome], nil
}

func differs(what string, ours, other []string) error {
	if slices.Equal(ours, other) {
		return nil
	}
	return fmt.Errorf("%s:\n  ours       %q\n  Appendix D %q", what, ours, other)
}

// compareEntry compares the history entry.
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
	return differs("end of the entry", texts(entry.End), nodes(positionsOf(b.chart, b.other)))
}

func texts[T ~string](list []T) []string {
	var out []string
	for _, text := range list {
		out = append(out, string(text))
	}
	return out
}

// compareInstances compares all that can be seen of the instance, and reads it from its stored form.
func (b *both) compareInstances() error {
	stored := b.definition.AppendRecord(nil, &b.ours, statemachine.Chain{}, nil)
	record, err := statemachine.ParseRecord(stored)
	if err != nil {
		return err
	}
	if b.ours, err = b.definition.Restore(b.ours.ID, record); err != nil {
		return err
	}
	var positions []string
	for _, p := range b.definition.Positions(&b.ours) {
		positions = append(positions, string(p.Machine)+"."+string(p.Node))
	}
	if err := differs("positions", positions, positionsOf(b.chart, b.other)); err != nil {
		return err
	}
	if err := differs("configuration", activeAt(b.chart, positions), configurationOf(b.other)); err != nil {
		return err
	}
	if want := object(b.chart, b.other.Variables); string(b.ours.Public) != want {
		return fmt.Errorf("variables: ours %s, Appendix D %s", b.ours.Public, want)
	}
	if err := differs("timers", timersOf(&b.ours), b.otherTimers()); err != nil {
		return err
	}
	if err := differs("history", historyOf(stored), b.otherHistory()); err != nil {
		return err
	}
	if ours, other := b.definition.IsDone(&b.ours), b.chart.IsDone(b.other); ours != other {
		return fmt.Errorf("done: ours %t, Appendix D %t", ours, other)
	}
	if ours := int(b.ours.UpdatedAt.Sub(begin).Milliseconds()); ours != b.other.Last {
		return fmt.Errorf("time of the last entry: ours %d, Appendix D %d", ours, b.other.Last)
	}
	return nil
}

// positionsOf is what statemachine/DEFINITION.md, "Positions", says of a configuration.
func positionsOf(c *appendixd.Chart, in appendixd.Instance) []string {
	if in.Configuration == nil {
		return nil
	}
	var out []string
	var visit func(region *appendixd.State)
	visit = func(region *appendixd.State) {
		s := region
		for s.Kind == appendixd.Compound {
			k := slices.IndexFunc(s.Children, func(c *appendixd.State) bool { return slices.Contains(in.Configuration, c) })
			if k < 0 {
				out = append(out, region.ID+".nowhere")
				return
			}
			s = s.Children[k]
		}
		out = append(out, region.ID+"."+s.ID)
		if s.Kind == appendixd.Parallel {
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

// activeAt lists the states that are active when an instance has these positions: those that they name, with their ancestors.
func activeAt(c *appendixd.Chart, positions []string) []string {
	active := map[*appendixd.State]bool{}
	for _, p := range positions {
		region, node, _ := strings.Cut(p, ".")
		for _, s := range c.States() {
			for up := s; s.ID == node && isIn(s, region) && up.Parent != nil; up = up.Parent {
				active[up] = true
			}
		}
	}
	var out []string
	for _, s := range c.States() {
		if active[s] {
			out = append(out, s.ID)
		}
	}
	return out
}

// isIn reports whether a state is the region or machine of that name, or lies in it.
func isIn(s *appendixd.State, region string) bool {
	for ; s.Parent != nil; s = s.Parent {
		if s.ID == region {
			return true
		}
	}
	return false
}

func configurationOf(in appendixd.Instance) []string {
	var out []string
	for _, s := range in.Configuration {
		out = append(out, s.ID)
	}
	return out
}

// timersOf lists timers in the order in which they began.
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

// historyOf reads what history states remember from the stored form (the layout is at statemachine.AppendRecord), which is
// the only place that shows it.
func historyOf(stored []byte) []string {
	r := packed.NewReader(stored[1:])
	for range 2 {
		r.Uvarint() // version, sequence
	}
	for range 2 {
		r.Varint() // created, updated
	}
	r.Take(len(statemachine.Chain{}))
	for range 4 {
		r.Text() // states, redirect, public, private
	}
	var out []string
	for memory := packed.NewReader(r.Text()); !memory.Whole() && !memory.Failed(); {
		line := string(memory.Text()) + "." + string(memory.Text()) + ":"
		for range memory.Uvarint() {
			line += " " + string(memory.Text())
		}
		out = append(out, line)
	}
	if r.Failed() {
		return []string{"stored form not readable"}
	}
	slices.Sort(out)
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
