package appendixd

import "slices"

func (i *interpreter) selectEventlessTransitions() []*Transition {
	return i.selectEnabled(func(t *Transition) bool { return t.Event == "" && !t.Done && t.After == nil })
}

func (i *interpreter) selectTransitions(event Event) []*Transition {
	return i.selectEnabled(func(t *Transition) bool { return i.nameMatch(t, event) })
}

// selectEnabled is what selectEventlessTransitions and selectTransitions have in common.
func (i *interpreter) selectEnabled(fits func(*Transition) bool) []*Transition {
	if i.takesNothing() {
		return nil
	}
	i.asked = map[*Transition]bool{}
	var enabledTransitions []*Transition
	atomicStates := i.configuration.filter(isAtomicState).inDocumentOrder()
	for _, state := range atomicStates {
		if t := i.firstEnabled(i.searched(state), fits); t != nil && !slices.Contains(enabledTransitions, t) {
			enabledTransitions = append(enabledTransitions, t)
		}
	}
	return i.removeConflictingTransitions(enabledTransitions)
}

// searched is the state and its proper ancestors.
func (i *interpreter) searched(state *State) []*State {
	all := append([]*State{state}, getProperAncestors(state, nil)...)
	if i.chart.Mistake == OuterTransitionsFirst {
		slices.Reverse(all)
	}
	return all
}

func (i *interpreter) firstEnabled(states []*State, fits func(*Transition) bool) *Transition {
	for _, s := range states {
		for _, t := range s.Transitions {
			if fits(t) && i.askedOnce(t) {
				return t
			}
		}
	}
	return nil
}

func (i *interpreter) removeConflictingTransitions(enabledTransitions []*Transition) []*Transition {
	if i.chart.Mistake == KeepsConflicts {
		return enabledTransitions
	}
	var filteredTransitions []*Transition
	for _, t1 := range enabledTransitions {
		t1Preempted := false
		var transitionsToRemove []*Transition
		for _, t2 := range filteredTransitions {
			if i.conflict(t1, t2) {
				i.count(Preemption)
				if isDescendant(t1.Source, t2.Source) {
					transitionsToRemove = append(transitionsToRemove, t2)
				} else {
					t1Preempted = true
					break
				}
			}
		}
		if !t1Preempted {
			filteredTransitions = slices.DeleteFunc(filteredTransitions, func(t *Transition) bool { return slices.Contains(transitionsToRemove, t) })
			filteredTransitions = append(filteredTransitions, t1)
		}
	}
	return filteredTransitions
}

func (i *interpreter) getTransitionDomain(t *Transition) *State {
	tstates := i.getEffectiveTargetStates(t.Target)
	switch {
	case len(tstates) == 0:
		return nil
	case i.isInternal(t, tstates):
		return t.Source
	}
	return i.findLCCA(t.Source, tstates)
}

// findLCCA is the least common compound ancestor of a transition's source and its targets.
func (i *interpreter) findLCCA(source *State, targets set) *State {
	for _, ancestor := range getProperAncestors(source, nil) {
		if isCompoundState(ancestor) && !slices.ContainsFunc(targets, func(s *State) bool { return !isDescendant(s, ancestor) }) {
			return ancestor
		}
	}
	return withinMachine(source)
}

func (i *interpreter) getEffectiveTargetStates(targets []*State) set {
	var effective set
	for _, s := range targets {
		switch {
		case !isHistoryState(s):
			effective.add(s)
		case i.historyValue[s] != nil:
			effective.union(i.historyValue[s])
		default:
			effective.union(i.getEffectiveTargetStates(defaultHistoryTargets(s)))
		}
	}
	return effective
}
