package appendixd

import (
	"cmp"
	"slices"
	"strings"
)

// This file has every deviation from Appendix D, one function each. The headings are those of statemachine/DEFINITION.md.

// isInternal: a transition stays inside its source unless it says reenter, also when the source is its own target, and
// whatever kind of state the source is. SCXML has internal transitions of compound states alone, to descendants, and only
// where they say so ("Domains").
func (i *interpreter) isInternal(t *Transition, tstates set) bool {
	if t.Reenter || i.wrong("takes transitions for external ones") {
		return false
	}
	return !slices.ContainsFunc(tstates, func(s *State) bool { return s != t.Source && !isDescendant(s, t.Source) })
}

// withinMachine: a domain never reaches beyond the state machine, even one that is parallel ("Domains").
func withinMachine(source *State) *State { return source.Machine() }

// domainsOnce computes the domains of a microstep before the exit, and for good. Appendix D does it again for the entry,
// when a history state remembers something else ("Domains").
func (i *interpreter) domainsOnce(transitions []*Transition) {
	i.domains = map[*Transition]*State{}
	for _, t := range transitions {
		i.domains[t] = i.getTransitionDomain(t)
	}
}

// domainOf is the domain that domainsOnce found; during the selection, what it is now.
func (i *interpreter) domainOf(t *Transition) *State {
	if domain, known := i.domains[t]; known {
		return domain
	}
	return i.getTransitionDomain(t)
}

// conflict: two transitions conflict when they leave a common state, and also when one leaves the source in which the
// other one stays ("Conflicts").
func (i *interpreter) conflict(t1, t2 *Transition) bool {
	exit1, exit2 := i.computeExitSet([]*Transition{t1}), i.computeExitSet([]*Transition{t2})
	if exit1.hasIntersection(exit2) {
		return true
	}
	stays := func(t *Transition) bool { return len(t.Target) > 0 && i.getTransitionDomain(t) == t.Source }
	if stays(t1) && exit2.isMember(t1.Source) || stays(t2) && exit1.isMember(t2.Source) {
		i.count("preempted because one stays in its source")
		return true
	}
	return false
}

// fillParallelDomain: Appendix D has compound domains only. A parallel one stays active, and all of its regions have been
// left, so those that are no target are entered by default ("Domains").
func (i *interpreter) fillParallelDomain(domain *State, statesToEnter *set) {
	if domain.Kind == Parallel {
		i.addOtherRegions(domain, statesToEnter)
	}
}

// withinDomain: nothing outside the domain is entered. Appendix D goes from the default of a history state up to the
// history state's parent, also when the domain lies inside that parent, and enters regions beside the domain that nobody
// has left; then two siblings are active ("Domains").
func (i *interpreter) withinDomain(ancestor *State) *State {
	if i.domain != nil && isDescendant(i.domain, ancestor) {
		return i.domain
	}
	return ancestor
}

// staysActive: the source of a transition to itself was not left, so it is not entered ("Domains").
func (i *interpreter) staysActive(s *State) bool { return i.configuration.isMember(s) }

// isImplicitRoot: the root stands for all state machines; it is no state, and nobody hears that it is done.
func isImplicitRoot(s *State) bool { return s.Parent == nil }

// defaultHistoryTargets: a history state without a target leads to the default entry of its parent ("History nodes").
func defaultHistoryTargets(h *State) []*State {
	switch {
	case h.Default != nil:
		return h.Default
	case h.Parent.Kind == Parallel:
		return h.Parent.Children
	}
	return initialTargets(h.Parent)
}

// nameMatch: a name matches itself only; x.* matches x and what is below it, * everything; done events have transitions
// that take them by the state and not by the name, and those of timers have no others ("Event patterns", "Timers").
func (i *interpreter) nameMatch(t *Transition, e Event) bool {
	switch {
	case t.Done:
		return e.done == t.Source
	case t.After != nil || e.after != nil:
		return t.After == e.after
	case i.wrong("takes names for prefixes") && t.Event != "" && strings.HasPrefix(e.Name, t.Event+"."):
		return true
	}
	return matches(t.Event, e.Name)
}

func matches(pattern, name string) bool {
	prefix, below := strings.CutSuffix(pattern, ".*")
	return pattern == "*" || name == pattern || below && (name == prefix || strings.HasPrefix(name, prefix+"."))
}

// askedOnce evaluates a guard once in a selection. Appendix D does it for each atomic state below, which makes a
// difference for guards that fail ("Selection").
func (i *interpreter) askedOnce(t *Transition) bool {
	enabled, known := i.asked[t]
	if !known {
		enabled = i.conditionMatch(t)
		i.asked[t] = enabled
	}
	return enabled
}

// raiseError raises error.execution; of what went wrong only that is compared.
func (i *interpreter) raiseError() {
	i.count("execution errors")
	i.enqueue(Event{Name: errorExecution})
}

const errorExecution = "error.execution"

// untaken: an error that nothing takes undoes the step. Appendix D drops it ("Errors").
func (i *interpreter) untaken(e Event) {
	if e.Name == errorExecution && !i.wrong("keeps half a step") {
		i.undo("error.execution was not taken")
	}
}

func (i *interpreter) undo(why string) {
	if i.undone == "" {
		i.undone = why
	}
	i.running = false
}

func (i *interpreter) undoAtBound(what string) {
	if i.undone == "" {
		i.count("undone steps at a bound of one event")
	}
	i.atBound = true
	i.undo("too many " + what)
}

// Bounds of a step ("Bounds of one event").
const (
	mostMicrosteps = 1000
	mostActions    = 10_000
	mostWaiting    = 1000
	mostTimers     = 1000
)

func (i *interpreter) boundMicrosteps() bool {
	if i.microsteps++; i.microsteps > mostMicrosteps {
		i.undoAtBound("microsteps")
	}
	return i.undone == ""
}

func (i *interpreter) boundActions() bool {
	if i.actions++; i.actions > mostActions {
		i.undoAtBound("actions")
	}
	return i.undone == ""
}

func (i *interpreter) boundQueue() bool {
	if len(i.internalQueue) >= mostWaiting {
		i.undoAtBound("waiting events")
	}
	return i.undone == ""
}

// takesNothing: an instance is done when all of its machines are, and then takes no transition. In Appendix D one final
// state at the top ends everything ("Final nodes and done events").
func (i *interpreter) takesNothing() bool { return i.isInFinalState(i.chart.Root) }

// endWhenDone: an instance that is done has no timers ("Timers").
func (i *interpreter) endWhenDone() {
	if i.takesNothing() {
		i.count("steps that end in a done instance")
		i.timers = nil
	}
}

// unmatched: an event that nothing takes is recorded, rejected or ignored. Appendix D forgets it, and looks at eventless
// transitions again ("Unmatched events").
func (i *interpreter) unmatched(before Instance, e Event) (Instance, Report) {
	word := cmp.Or(i.declaration(e).Unmatched, i.chart.Unmatched)
	outcome := Recorded
	switch {
	case word == "reject" && !e.timed:
		i.count("unmatched events rejected")
		outcome = Rejected
	case word == "reject" || word == "ignore":
		i.count("unmatched events ignored")
		outcome = Ignored
	}
	if outcome != Recorded {
		return before, Report{Outcome: outcome, Counts: i.counts}
	}
	i.count("unmatched events recorded")
	return i.finish(before, Recorded)
}

func (i *interpreter) declaration(e Event) Declaration {
	for _, d := range i.chart.Events {
		if d.Event == e.Name {
			return d
		}
	}
	return Declaration{}
}

// applyData puts the data of an event from outside into the variables, behind the selection and before any state is left;
// that of a timer only where the declaration says so ("Event data").
func (i *interpreter) applyData(e Event) {
	apply := i.declaration(e).Apply
	if e.Data != nil && (apply == "merge" || apply == "" && !e.timed) {
		i.datamodel["n"] = *e.Data
	}
}

// neverBack: the time of an instance does not go back ("Time").
func neverBack(in Instance, now int) int { return max(in.Last, now) }

// beginTimersOf begins the timers of a state, behind its entry actions. SCXML has none ("Timers").
func (i *interpreter) beginTimersOf(s *State) {
	for _, a := range s.After {
		delay, ok := i.delay(a.Delay)
		if !ok {
			i.raiseError()
			continue
		}
		i.begin(Timer{Event: Event{Name: a.Event}, Due: i.now + delay, After: a})
	}
}

// endTimersOf ends the timers of a state, behind its exit actions.
func (i *interpreter) endTimersOf(s *State) {
	if !i.wrong("lets timers outlive their states") {
		i.end("timers ended with their state", func(t Timer) bool { return t.After != nil && t.After.State == s })
	}
}

func (i *interpreter) begin(t Timer) {
	if len(i.timers) >= mostTimers {
		i.undoAtBound("timers")
		return
	}
	i.timers = append(i.timers, t)
}

func (i *interpreter) end(feature string, which func(Timer) bool) {
	before := len(i.timers)
	i.timers = slices.DeleteFunc(i.timers, which)
	for range before - len(i.timers) {
		i.count(feature)
	}
}

// NextTimer is the position of the timer that comes first by a time, and false when none does: the one that is due first,
// and of several the one that began first.
func (c *Chart) NextTimer(in Instance, until int) (position int, ok bool) {
	position = -1
	for k, t := range in.Timers {
		first := position < 0 || t.Due < in.Timers[position].Due
		if c.Mistake == "fires timers in the order of their begin" {
			first = position < 0
		}
		if t.Due <= until && first {
			position = k
		}
	}
	return position, position >= 0
}

// IsDone reports whether all state machines are in final states.
func (c *Chart) IsDone(in Instance) bool {
	i := interpreter{configuration: in.Configuration}
	return i.isInFinalState(c.Root)
}
