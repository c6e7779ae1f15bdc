package chart

// TimerRule says what becomes of timers in a migration.
type TimerRule byte

// Timers go on, begin anew, or end.
const (
	TimersKept TimerRule = iota
	TimersRestarted
	TimersDropped
)

// Plan is a plan of migration (statemachine/DEFINITION.md, "Migration").
type Plan struct {
	Old, New *Definition
	// Counterparts are the nodes of New for those of Old, by index; nil without one.
	Counterparts []*Node
	Timers       TimerRule
	Assign       []Action
}
