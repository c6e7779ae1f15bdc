package appendixd

import (
	"maps"
	"slices"
)

// Event is an event, with the member n of its data; nil for none.
type Event struct {
	Name string
	Data *int
	// done is the state that is done, for a done event.
	done *State
	// after is the timer of a state that has ended.
	after *After
	// timed: it comes by itself.
	timed bool
}

// Timer is an event that will come.
type Timer struct {
	Event Event
	Due   int // milliseconds
	ID    string
	After *After // nil: sent
}

// Instance is where a chart is between two events.
type Instance struct {
	Configuration []*State // in document order
	History       map[*State][]*State
	Variables     map[string]int
	Timers        []Timer // in the order in which they began
	// Last is the time of the last step that left a trace.
	Last int
}

// The outcomes of an event. Undone and Rejected change nothing.
const (
	Moved    = "moved"
	Recorded = "recorded"
	Ignored  = "ignored"
	Rejected = "rejected"
	Undone   = "undone"
)

// Report says what one step did.
type Report struct {
	Outcome string
	Why     string // of Undone
	AtBound bool   // Undone because the step would have taken too much
	Log     []string
	Counts  map[string]int // how often the step met each feature
}

// interpreter has the global variables of Appendix D, for one macrostep.
type interpreter struct {
	chart         *Chart
	configuration set
	historyValue  map[*State][]*State
	datamodel     map[string]int
	internalQueue []Event
	event         *Event // datamodel["_event"]
	running       bool

	now    int
	timers []Timer
	log    []string
	counts map[string]int

	domains             map[*Transition]*State // see domainsOnce
	domain              *State                 // see withinDomain; nil: the root
	asked               map[*Transition]bool   // see askedOnce
	microsteps, actions int
	undone              string // why; see undo
	atBound             bool
}

func (c *Chart) interpreter(in Instance, now int) *interpreter {
	return &interpreter{
		chart:         c,
		configuration: slices.Clone(in.Configuration),
		historyValue:  maps.Clone(in.History),
		datamodel:     maps.Clone(in.Variables),
		timers:        slices.Clone(in.Timers),
		running:       true,
		counts:        map[string]int{},
		now:           neverBack(in, now),
	}
}

// Interpret starts the chart: the procedure interpret, until the first macrostep is complete.
func (c *Chart) Interpret(now int) (Instance, Report) {
	variables := map[string]int{}
	for _, name := range c.Variables {
		variables[name] = 0
	}
	i := c.interpreter(Instance{History: map[*State][]*State{}, Variables: variables}, now)
	var statesToEnter set
	for _, machine := range c.Root.Children {
		i.addDescendantStatesToEnter(machine, &statesToEnter)
	}
	i.enter(statesToEnter)
	i.mainEventLoop()
	return i.finish(Instance{}, Moved)
}

// Send takes an event from outside.
func (c *Chart) Send(in Instance, e Event, now int) (Instance, Report) {
	return c.interpreter(in, now).takeExternalEvent(in, e)
}

// Fire takes the event of a timer, which has ended then, whatever comes of it.
func (c *Chart) Fire(in Instance, position, now int) (Instance, Report) {
	t := in.Timers[position]
	in.Timers = slices.Delete(slices.Clone(in.Timers), position, position+1)
	i := c.interpreter(in, now)
	i.count("timers fired")
	e := t.Event
	e.timed, e.after = true, t.After
	if i.now > t.Due {
		i.count("timers fired later than due")
	}
	return i.takeExternalEvent(in, e)
}

// mainEventLoop takes eventless transitions and internal events until the macrostep is complete.
func (i *interpreter) mainEventLoop() {
	chain := 0
	for macrostepDone := false; i.running && !macrostepDone; {
		enabledTransitions := i.selectEventlessTransitions()
		if len(enabledTransitions) > 0 {
			i.count("eventless transitions")
		} else {
			if len(i.internalQueue) == 0 {
				macrostepDone = true
			} else {
				internalEvent := i.dequeue()
				i.event = &internalEvent
				enabledTransitions = i.selectTransitions(internalEvent)
				if len(enabledTransitions) == 0 {
					i.untaken(internalEvent)
				} else if chain++; chain == 2 {
					i.count("steps with a chain of internal events")
				}
			}
		}
		if len(enabledTransitions) > 0 {
			i.microstep(enabledTransitions)
		}
	}
}

// takeExternalEvent is the end of mainEventLoop, where an event from outside is taken, and then its begin again.
func (i *interpreter) takeExternalEvent(before Instance, e Event) (Instance, Report) {
	i.event = &e
	enabledTransitions := i.selectTransitions(e)
	if len(enabledTransitions) == 0 && len(i.internalQueue) == 0 {
		return i.unmatched(before, e)
	}
	if len(enabledTransitions) > 0 {
		i.applyData(e)
		i.microstep(enabledTransitions)
	}
	i.mainEventLoop()
	return i.finish(before, Moved)
}

func (i *interpreter) microstep(enabledTransitions []*Transition) {
	if !i.boundMicrosteps() {
		return
	}
	i.domainsOnce(enabledTransitions)
	i.exitStates(enabledTransitions)
	i.executeTransitionContent(enabledTransitions)
	i.enterStates(enabledTransitions)
	i.domains, i.domain = nil, nil
}

func (i *interpreter) executeTransitionContent(enabledTransitions []*Transition) {
	for _, t := range enabledTransitions {
		i.countTransition(t)
		i.executeContent(t.Content)
	}
}

func (i *interpreter) enqueue(e Event) {
	if !i.boundQueue() {
		return
	}
	if i.wrong("takes the last raised event first") {
		i.internalQueue = append([]Event{e}, i.internalQueue...)
		return
	}
	i.internalQueue = append(i.internalQueue, e)
}

func (i *interpreter) dequeue() Event {
	e := i.internalQueue[0]
	i.internalQueue = i.internalQueue[1:]
	return e
}

func (i *interpreter) isInFinalState(s *State) bool {
	switch {
	case s.Kind == Compound:
		return slices.ContainsFunc(s.Children, func(c *State) bool { return c.Kind == Final && i.configuration.isMember(c) })
	case s.Kind == Parallel:
		return !slices.ContainsFunc(s.Children, func(c *State) bool { return !i.isInFinalState(c) })
	}
	return false
}

func (i *interpreter) finish(before Instance, outcome string) (Instance, Report) {
	report := Report{Outcome: outcome, Log: i.log}
	if i.undone != "" {
		i.count("undone steps")
		return before, Report{Outcome: Undone, Why: i.undone, AtBound: i.atBound, Counts: i.counts}
	}
	i.endWhenDone()
	report.Counts = i.counts
	return Instance{
		Configuration: i.configuration.inDocumentOrder(),
		History:       i.historyValue,
		Variables:     i.datamodel,
		Timers:        i.timers,
		Last:          i.now,
	}, report
}

func (i *interpreter) wrong(mistake string) bool { return i.chart.Mistake == mistake }

func (i *interpreter) count(feature string) { i.counts[feature]++ }

func (i *interpreter) countTransition(t *Transition) {
	switch {
	case len(t.Target) == 0:
		i.count("transitions without target")
	case i.domainOf(t) == t.Source:
		i.count("transitions inside their source")
	}
	if t.Reenter {
		i.count("transitions with reenter")
	}
	if len(t.Target) > 1 {
		i.count("transitions with several targets")
	}
}
