package values

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// WeightMax is how large a value that an expression makes may be, in bytes. The largest input is 1 MiB; four of them put together
// still fit.
//
// NB: cel-go's cost alone does not bound a value. It is charged after a call has made its result, lists share their parts, so
// that forty doublings are cheap, and a call on dynamic operands costs 1 whatever it does.
const WeightMax = 4 << 20

// UnitWeight is what a value weighs beside its text, and a scalar altogether.
const UnitWeight = 8

// Weigher is a value of another package that knows what it weighs.
type Weigher interface{ Weight() int }

// scale adds up weights of values. A part that is used twice counts twice, because
// comparing, printing and encoding go through it twice.
type scale struct {
	weight int
	steps  int // how many values were looked at
}

// Weigh returns the weight of v, or something above WeightMax when it is more, and the number of values it had to look at.
func Weigh(v ref.Val) (weight, steps int) {
	var s scale
	s.add(v)
	return s.weight, s.steps
}

// add returns false as soon as the weight is too much.
func (s *scale) add(v ref.Val) bool {
	s.steps++
	s.weight += UnitWeight
	switch v := v.(type) {
	case types.String:
		s.weight += len(v)
	case types.Bytes:
		s.weight += len(v)
	case *Object:
		s.weight += len(v.Raw)
	case *List:
		s.weight += len(v.Raw)
	case *types.Optional:
		if v.HasValue() {
			return s.add(v.GetValue())
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			val, _ := v.Find(key)
			if !s.add(key) || !s.add(val) {
				return false
			}
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if !s.add(it.Next()) {
				return false
			}
		}
	case Weigher:
		s.weight += v.Weight()
	}
	return s.weight <= WeightMax
}

// Stop ends the evaluation by the panic that cel-go itself uses for that and
// recovers. A CEL error would not do, because || could absorb it.
func Stop(reason string) {
	panic(interpreter.EvalCancelledError{Cause: interpreter.MemoryLimitExceeded, Message: reason})
}

const TooLarge = "a value would be larger than 4 MiB"

// CheckBytes stops the evaluation when a text of n bytes is too long.
func CheckBytes(n int) {
	if n > WeightMax {
		Stop(TooLarge)
	}
}

// Checked stops the evaluation when v is too large, and charges for looking.
func Checked(frame *interpreter.ExecutionFrame, id int64, v ref.Val) ref.Val {
	switch v.(type) {
	case types.Bool, types.Int, types.Double, *types.Err:
		return v
	}
	weight, steps := Weigh(v)
	if weight > WeightMax {
		Stop(TooLarge)
	}
	if costs := frame.CostTracker(); costs != nil && steps > 1 {
		costs.EvalUnary(frame, id, weighing{}, types.Int(steps), v)
	}
	return v
}

// weighing is the call that the cost of a weighing is booked on.
type weighing struct{}

const WeighFunction = "@weigh"

// Function implements cost.Call.
func (weighing) Function() string { return WeighFunction }

// OverloadID implements cost.Call.
func (weighing) OverloadID() string { return "" }
