package appendixd

func (i *interpreter) exitStates(enabledTransitions []*Transition) {
	statesToExit := i.computeExitSet(enabledTransitions).inExitOrder()
	if i.chart.Mistake == ExitsOuterFirst {
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
	if i.chart.Mistake == RecordsNoHistory {
		return
	}
	i.historyValue[h] = i.configuration.inDocumentOrder().filter(func(s *State) bool {
		if h.Kind == DeepHistory && i.chart.Mistake != DeepIsShallow {
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
