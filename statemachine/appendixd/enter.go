package appendixd

import "slices"

func (i *interpreter) enterStates(enabledTransitions []*Transition) {
	i.enter(i.computeEntrySet(enabledTransitions))
}

// enter is the second half of enterStates.
func (i *interpreter) enter(statesToEnter set) {
	inOrder := statesToEnter.inDocumentOrder()
	if i.chart.Mistake == EntersInnerFirst {
		inOrder = statesToEnter.inExitOrder()
	}
	for _, s := range inOrder {
		if i.staysActive(s) {
			continue
		}
		i.configuration.add(s)
		i.executeContent(s.OnEntry)
		i.beginTimersOf(s)
		if isFinalState(s) {
			i.done(s)
		}
	}
}

// done raises what entering a final state completes.
func (i *interpreter) done(s *State) {
	parent := s.Parent
	event := Event{Name: "done.state." + parent.ID, done: parent}
	if !event.bring(i, s.Output) {
		i.raiseError()
	}
	i.count(DoneEvent)
	i.enqueue(event)
	grandparent := parent.Parent
	if !isImplicitRoot(grandparent) && isParallelState(grandparent) && i.isInFinalState(grandparent) && i.chart.Mistake != ParallelNeverDone {
		i.count(DoneParallel)
		i.enqueue(Event{Name: "done.state." + grandparent.ID, done: grandparent})
	}
}

func (i *interpreter) computeEntrySet(transitions []*Transition) set {
	var statesToEnter set
	for _, t := range transitions {
		if len(t.Target) == 0 {
			continue
		}
		ancestor := i.domainOf(t)
		i.domain = ancestor
		for _, s := range t.Target {
			i.addDescendantStatesToEnter(s, &statesToEnter)
		}
		for _, s := range i.getEffectiveTargetStates(t.Target) {
			i.addAncestorStatesToEnter(s, ancestor, &statesToEnter)
		}
		i.fillParallelDomain(ancestor, &statesToEnter)
	}
	return statesToEnter
}

func (i *interpreter) addDescendantStatesToEnter(state *State, statesToEnter *set) {
	switch {
	case isHistoryState(state):
		targets := i.historyValue[state]
		if targets == nil {
			i.count(DefaultHistory)
			targets = defaultHistoryTargets(state)
		} else {
			i.countHistory(state)
		}
		for _, s := range targets {
			i.addDescendantStatesToEnter(s, statesToEnter)
		}
		for _, s := range targets {
			i.addAncestorStatesToEnter(s, i.withinDomain(state.Parent), statesToEnter)
		}
	case isCompoundState(state):
		statesToEnter.add(state)
		for _, s := range initialTargets(state) {
			i.addDescendantStatesToEnter(s, statesToEnter)
		}
		for _, s := range initialTargets(state) {
			i.addAncestorStatesToEnter(s, state, statesToEnter)
		}
	case isParallelState(state):
		statesToEnter.add(state)
		i.addOtherRegions(state, statesToEnter)
	default:
		statesToEnter.add(state)
	}
}

// initialTargets are the targets of a compound state's initial transition: without one, the first child (section 3.3).
func initialTargets(s *State) []*State {
	if s.Initial == nil {
		return s.Children[:1]
	}
	return s.Initial
}

// addOtherRegions adds the regions of a parallel state in which nothing is entered yet.
func (i *interpreter) addOtherRegions(parallel *State, statesToEnter *set) {
	if i.chart.Mistake == LeavesRegionsOut && !isImplicitRoot(parallel.Parent) {
		return
	}
	for _, child := range getChildStates(parallel) {
		if !slices.ContainsFunc(*statesToEnter, func(s *State) bool { return isDescendant(s, child) }) {
			i.addDescendantStatesToEnter(child, statesToEnter)
		}
	}
}

func (i *interpreter) addAncestorStatesToEnter(state, ancestor *State, statesToEnter *set) {
	for _, anc := range getProperAncestors(state, ancestor) {
		statesToEnter.add(anc)
		if isParallelState(anc) {
			i.addOtherRegions(anc, statesToEnter)
		}
	}
}
