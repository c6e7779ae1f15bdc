package appendixd

// Feature is something that a step can meet. A comparison counts how often it met each.
type Feature uint8

// The features.
const (
	EventlessTransition Feature = iota
	InternalTransition
	ReenteredSource
	TargetlessTransition
	SeveralTargets
	Preemption
	ConflictOfStaying
	ShallowRestored
	DeepRestored
	DefaultHistory
	DoneEvent
	DoneParallel
	DoneInstance
	RaisedEvent
	RaiseChain
	FailedGuard
	ExecutionError
	UndoneStep
	BoundReached
	FiredTimer
	LateTimer
	EndedTimer
	CancelledTimer
	RecordedEvent
	IgnoredEvent
	RejectedEvent
	features
)

var featureNames = [features]string{
	"eventless transitions", "transitions inside their source", "transitions with reenter", "transitions without target", "transitions with several targets",
	"preempted transitions", "of these, because one stays in its source", "shallow histories restored", "deep histories restored", "defaults of histories taken",
	"done events", "of these, of parallel states", "steps that end in a done instance", "raised events", "steps with a chain of internal events",
	"guards that fail", "execution errors", "undone steps", "of these, at a bound of one event", "timers fired", "of these, later than due",
	"timers ended with their state", "timers cancelled by id", "unmatched events recorded", "unmatched events ignored", "unmatched events rejected",
}

func (f Feature) String() string { return featureNames[f] }

// Counts are how often each feature was met.
type Counts [features]int

// Add adds those of another run.
func (c *Counts) Add(other Counts) {
	for f, n := range other {
		c[f] += n
	}
}

func (i *interpreter) count(f Feature) { i.counts[f]++ }

func (i *interpreter) countHistory(h *State) {
	if h.Kind == DeepHistory {
		i.count(DeepRestored)
	} else {
		i.count(ShallowRestored)
	}
}

func (i *interpreter) countTransition(t *Transition) {
	switch {
	case len(t.Target) == 0:
		i.count(TargetlessTransition)
	case i.domainOf(t) == t.Source:
		i.count(InternalTransition)
	}
	if t.Reenter {
		i.count(ReenteredSource)
	}
	if len(t.Target) > 1 {
		i.count(SeveralTargets)
	}
}

// Mistake is a fault that the interpreter makes on purpose, so that a comparison can show that it would find it.
type Mistake uint8

// The mistakes. None is none.
const (
	None Mistake = iota
	KeepsConflicts
	OuterTransitionsFirst
	IgnoresGuards
	NamesArePrefixes
	ExternalByDefault
	ExitsOuterFirst
	EntersInnerFirst
	LeavesRegionsOut
	RecordsNoHistory
	DeepIsShallow
	ParallelNeverDone
	LastEventFirst
	KeepsHalfSteps
	TimersInOrderOfBegin
	TimersOutliveStates
	CancelsNothing
	mistakes
)

var mistakeNames = [mistakes]string{
	"none", "keeps conflicting transitions", "searches outer states first", "ignores guards", "takes names for prefixes", "takes transitions for external ones",
	"leaves outer states first", "enters inner states first", "leaves regions out", "records no history", "takes deep history for shallow one",
	"never sees that a parallel state is done", "takes the last raised event first", "keeps half a step", "fires timers in the order of their begin",
	"lets timers outlive their states", "cancels nothing",
}

func (m Mistake) String() string { return mistakeNames[m] }

// Mistakes are all of them, without None.
func Mistakes() []Mistake {
	var all []Mistake
	for m := None + 1; m < mistakes; m++ {
		all = append(all, m)
	}
	return all
}
