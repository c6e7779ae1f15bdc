package chart

// TimerRule says what happens to timers in a migration.
type TimerRule byte

// Timers go on, start again, or end.
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
