package expr

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// maxWeight is how large a value that an expression makes may be, in bytes. The
// largest input is 1 MiB; four of them put together still fit.
//
// NB: cel-go's cost alone does not bound a value. It is charged after a call has
// made its result, lists share their parts, so that forty doublings are cheap,
// and a call on dynamic operands costs 1 whatever it does.
const maxWeight = 4 << 20

// unitWeight is what a value weighs beside its text, and a scalar altogether.
const unitWeight = 8

// scale adds up weights of values. A part that is used twice counts twice, because
// comparing, printing and encoding go through it twice.
type scale struct {
	weight int
	steps  int // how many values were looked at
}

// weigh returns the weight of v, or something above maxWeight when it is more,
// and the number of values it had to look at.
func weigh(v ref.Val) (weight, steps int) {
	var s scale
	s.add(v)
	return s.weight, s.steps
}

// add returns false as soon as the weight is too much.
func (s *scale) add(v ref.Val) bool {
	s.steps++
	s.weight += unitWeight
	switch v := v.(type) {
	case types.String:
		s.weight += len(v)
	case types.Bytes:
		s.weight += len(v)
	case *object:
		s.weight += len(v.raw)
	case *list:
		s.weight += len(v.raw)
	case *view:
		s.weight += v.weight()
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
	}
	return s.weight <= maxWeight
}

// stop ends the evaluation by the panic that cel-go itself uses for that and
// recovers. A CEL error would not do, because || could absorb it.
func stop(reason string) {
	panic(interpreter.EvalCancelledError{Cause: interpreter.MemoryLimitExceeded, Message: reason})
}

const tooLarge = "a value would be larger than 4 MiB"

// checkBytes stops the evaluation when a text of n bytes is too long.
func checkBytes(n int) {
	if n > maxWeight {
		stop(tooLarge)
	}
}

// checked stops the evaluation when v is too large, and charges for looking.
func checked(frame *interpreter.ExecutionFrame, id int64, v ref.Val) ref.Val {
	switch v.(type) {
	case types.Bool, types.Int, types.Double, *types.Err:
		return v
	}
	weight, steps := weigh(v)
	if weight > maxWeight {
		stop(tooLarge)
	}
	if costs := frame.CostTracker(); costs != nil && steps > 1 {
		costs.EvalUnary(frame, id, weighing{}, types.Int(steps), v)
	}
	return v
}

// weighing is the call that the cost of a weighing is booked on.
type weighing struct{}

const weighFunction = "@weigh"

// Function implements cost.Call.
func (weighing) Function() string { return weighFunction }

// OverloadID implements cost.Call.
func (weighing) OverloadID() string { return "" }
