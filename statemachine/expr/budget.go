package expr

import "cel.dev/cel-go/cel"

const (
	// evaluationCost is charged for an evaluation whose cost is not counted.
	evaluationCost = 32
	// readPerUnit and writtenPerUnit are how many bytes one unit pays for: of the data, and of a result that is not a slice of
	// the data. Skipping and writing so many bytes takes about as long as one unit.
	readPerUnit    = 64
	writtenPerUnit = 32
	// maxUncounted is how much data an expression may read before its cost is
	// counted: the estimate of its cost assumes small data.
	maxUncounted = 64 << 10
)

// Budget bounds what several evaluations cost together, in the units of Options.CostMax: what is counted while they run, and a
// share for the data that they read and the results that they write. It depends on nothing but the expressions and the data. It
// is not safe for concurrent use. The zero Budget is exhausted by the first charge.
type Budget struct {
	left      uint64
	exhausted bool
}

// NewBudget returns a Budget of the given cost.
func NewBudget(most uint64) Budget { return Budget{left: most} }

// Left is how much of it is left.
func (b *Budget) Left() uint64 { return b.left }

// Charge takes cost from the budget. A nil Budget has no bound.
func (b *Budget) Charge(cost uint64) {
	switch {
	case b == nil:
	case cost > b.left:
		b.left, b.exhausted = 0, true
	default:
		b.left -= cost
	}
}

// ChargeBytes takes from the budget what reading or copying n bytes costs.
func (b *Budget) ChargeBytes(n int) { b.Charge(uint64(n) / readPerUnit) }

// Exhausted reports whether more was charged than the budget had. Each further evaluation fails then.
func (b *Budget) Exhausted() bool { return b != nil && b.exhausted }

func (b *Budget) admit() error {
	if b.Exhausted() {
		return limitError("the evaluations cost too much together")
	}
	return nil
}

// chargeFor charges an evaluation that read so many bytes. details are those of a program that counts, else nil.
func (b *Budget) chargeFor(read int, details *cel.EvalDetails) {
	if b == nil {
		return
	}
	cost := uint64(evaluationCost)
	if actual := details.ActualCost(); actual != nil {
		cost += *actual
	}
	b.Charge(cost + uint64(read)/readPerUnit)
}
