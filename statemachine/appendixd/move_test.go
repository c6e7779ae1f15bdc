package appendixd

import (
	"slices"
)

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

func (i *interpreter) searched(state *State) []*State {
	all := append([]*State{state}, getProperAncestors(state, nil)...)
	if i.wrong("searches outer states first") {
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
	if i.wrong("keeps conflicting transitions") {
		return enabledTransitions
	}
	var filteredTransitions []*Transition
	for _, t1 := range enabledTransitions {
		t1Preempted := false
		var transitionsToRemove []*Transition
		for _, t2 := range filteredTransitions {
			if i.conflict(t1, t2) {
				i.count("preempted transitions")
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
		if ancestor.Kind == Compound && !slices.ContainsFunc(targets, func(s *State) bool { return !isDescendant(s, ancestor) }) {
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

func (i *interpreter) exitStates(enabledTransitions []*Transition) {
	statesToExit := i.computeExitSet(enabledTransitions).inExitOrder()
	if i.wrong("leaves outer states first") {
		statesToExit = statesToExit.inDocumentOrder()
	}
	for _, s := range statesToExit {
		for _, h := range s.Histories {
			i.record(h)
		}
	}
	for _, s := range statesToExit {
		i.executeContent(s.OnExit)
		i.endTimersOf(s)
		i.configuration.delete(s)
	}
}

// record is what exitStates does for one history state.
func (i *interpreter) record(h *State) {
	if i.wrong("records no history") {
		return
	}
	i.historyValue[h] = i.configuration.inDocumentOrder().filter(func(s *State) bool {
		if h.Kind == DeepHistory && !i.wrong("takes deep history for shallow one") {
			return isAtomicState(s) && isDescendant(s, h.Parent)
		}
		return s.Parent == h.Parent
	})
}

func (i *interpreter) computeExitSet(transitions []*Transition) set {
	var statesToExit set
	for _, t := range transitions {
		if len(t.Target) > 0 {
			domain := i.domainOf(t)
			for _, s := range i.configuration {
				if isDescendant(s, domain) {
					statesToExit.add(s)
				}
			}
		}
	}
	return statesToExit
}

func (i *interpreter) enterStates(enabledTransitions []*Transition) {
	i.enter(i.computeEntrySet(enabledTransitions))
}

// enter is the second half of enterStates.
func (i *interpreter) enter(statesToEnter set) {
	inOrder := statesToEnter.inDocumentOrder()
	if i.wrong("enters inner states first") {
		inOrder = statesToEnter.inExitOrder()
	}
	for _, s := range inOrder {
		if i.staysActive(s) {
			continue
		}
		i.configuration.add(s)
		i.executeContent(s.OnEntry)
		i.beginTimersOf(s)
		if s.Kind == Final {
			i.done(s)
		}
	}
}

func (i *interpreter) done(s *State) {
	parent := s.Parent
	event := Event{Name: "done.state." + parent.ID, done: parent}
	if !event.bring(i, s.Output) {
		i.raiseError()
	}
	i.count("done events")
	i.enqueue(event)
	grandparent := parent.Parent
	if !isImplicitRoot(grandparent) && grandparent.Kind == Parallel && i.isInFinalState(grandparent) && !i.wrong("never sees that a parallel state is done") {
		i.count("done events of parallel states")
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
			i.count("defaults of histories taken")
			targets = defaultHistoryTargets(state)
		} else {
			i.count(map[Kind]string{DeepHistory: "deep histories restored", ShallowHistory: "shallow histories restored"}[state.Kind])
		}
		for _, s := range targets {
			i.addDescendantStatesToEnter(s, statesToEnter)
		}
		for _, s := range targets {
			i.addAncestorStatesToEnter(s, i.withinDomain(state.Parent), statesToEnter)
		}
	case state.Kind == Compound:
		statesToEnter.add(state)
		for _, s := range initialTargets(state) {
			i.addDescendantStatesToEnter(s, statesToEnter)
		}
		for _, s := range initialTargets(state) {
			i.addAncestorStatesToEnter(s, state, statesToEnter)
		}
	case state.Kind == Parallel:
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

func (i *interpreter) addOtherRegions(parallel *State, statesToEnter *set) {
	if i.wrong("leaves regions out") && !isImplicitRoot(parallel.Parent) {
		return
	}
	for _, child := range parallel.Children {
		if !slices.ContainsFunc(*statesToEnter, func(s *State) bool { return isDescendant(s, child) }) {
			i.addDescendantStatesToEnter(child, statesToEnter)
		}
	}
}

func (i *interpreter) addAncestorStatesToEnter(state, ancestor *State, statesToEnter *set) {
	for _, anc := range getProperAncestors(state, ancestor) {
		statesToEnter.add(anc)
		if anc.Kind == Parallel {
			i.addOtherRegions(anc, statesToEnter)
		}
	}
}
