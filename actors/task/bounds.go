package task

// Bounds are how much a page looks at. One that needs more ends early, with a cursor. A count has the same bounds.
type Bounds struct {
	// Shown is how many instances that the caller may see, and Hidden how many others, in workflows of which the caller
	// may see some.
	Shown, Hidden int
	Rows          int    // how many rows of tasks
	Cost          uint64 // what the rules, guards and titles of all these instances cost, in units of an expression
}

// UsualBounds let a page take some tenths of a second, and where much is hidden or rules are dear a second or two: a
// list should not be empty that has something.
var UsualBounds = Bounds{Shown: 10_000, Hidden: 100_000, Rows: 200_000, Cost: 20_000_000}
