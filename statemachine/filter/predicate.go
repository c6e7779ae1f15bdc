package filter

import (
	"regexp"

	"troupe/statemachine/data"
)

// predicate is what a condition asks of one value. It is built once and then only read.
type predicate struct {
	op op
	// want is what opEqual and the comparisons compare with.
	want data.Value
	// list is that of opIn, in data.Order, each once.
	list []data.Value
	// kinds is that of opKind.
	kinds kinds
	// number is the size of opSize, the divisor of opRemainder and the mask of
	// the bit operators; remainder is that of opRemainder.
	number, remainder int64
	// regular, prefix and steps are those of opRegular; see regularExpression.
	regular *regexp.Regexp
	prefix  string
	steps   int
	// nodes are the conditions of opElement, which all must hold for one element.
	nodes []node
	// documents says that those are on the element as a document.
	documents bool
}

type op uint8

const (
	opEqual op = iota
	opGreater
	opGreaterEqual
	opLess
	opLessEqual
	opIn
	opExists
	opKind
	opSize
	opRemainder
	opBitsAllSet
	opBitsAllClear
	opBitsAnySet
	opBitsAnyClear
	opRegular
	opElement
	// opNever holds for nothing.
	opNever
	// opCollect holds for nothing either, and notes what it was asked about.
	opCollect
)

// ofArrays says that an array at the end of a path is looked at only as a whole.
func (p *predicate) ofArrays() bool {
	return p.op == opExists || p.op == opSize || p.op == opElement
}

// holds asks about one value; the absent one is missing.
func (m *matching) holds(p *predicate, v data.Value) bool {
	switch p.op {
	case opRegular:
		return m.regular(p, v)
	case opElement:
		return m.holdsForElement(p, v)
	case opCollect:
		m.tried = append(m.tried, v)
		return false
	}
	return m.work(valueWork+len(v)/valueWork) && p.holds(v)
}

// holdsForElement is opElement. NB: elements that are scalars are not documents.
func (m *matching) holdsForElement(p *predicate, list data.Value) bool {
	for _, e := range list.Elements() {
		if p.documents && e.Kind() != data.Object && e.Kind() != data.Array {
			continue
		}
		all := true
		for i := range p.nodes {
			if all = m.node(&p.nodes[i], e); !all {
				break
			}
		}
		if all {
			return true
		}
	}
	return false
}

// holdsText is holds for a string that is not JSON.
func (p *predicate) holdsText(s string) bool {
	switch p.op {
	case opEqual:
		return p.want.TextIs(s)
	case opRegular:
		return p.regular.MatchString(s)
	case opExists:
		return true
	case opKind:
		return p.kinds&kindString != 0
	case opGreater, opGreaterEqual, opLess, opLessEqual, opIn:
		var buffer [80]byte // NB: stays on the stack, because neither call keeps it
		v := data.Value(data.AppendString(buffer[:0], s))
		if p.op == opIn {
			return p.lists(v)
		}
		return p.compares(v)
	}
	return false
}

// holds is for the predicates that look at nothing but p and v.
func (p *predicate) holds(v data.Value) bool {
	switch p.op {
	case opEqual:
		if p.want.Kind() == data.Null {
			return isNull(v)
		}
		return data.Equal(v, p.want)
	case opGreater, opGreaterEqual, opLess, opLessEqual:
		return p.compares(v)
	case opIn:
		return p.lists(v)
	case opExists:
		return len(v) > 0
	case opKind:
		return p.kinds.have(v)
	case opSize:
		return hasSize(v, p.number)
	case opRemainder:
		n, ok := v.Truncate()
		return ok && n%p.number == p.remainder
	case opBitsAllSet, opBitsAllClear, opBitsAnySet, opBitsAnyClear:
		return p.hasBits(v)
	}
	return false
}

func isNull(v data.Value) bool { return len(v) == 0 || v.Kind() == data.Null }

func (p *predicate) takesNull() bool {
	if p.op == opIn {
		return p.list[0].Kind() == data.Null // it is sorted
	}
	return p.want.Kind() == data.Null
}

func (p *predicate) lists(v data.Value) bool {
	if len(v) == 0 {
		return p.takesNull() // what equals null equals missing
	}
	low, high := 0, len(p.list)
	for low < high {
		middle := (low + high) / 2
		switch order := data.Order(p.list[middle], v); {
		case order == 0:
			return true
		case order < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return false
}

// compares is for the comparisons, which stay within a kind.
func (p *predicate) compares(v data.Value) bool {
	if p.want.Kind() == data.Null {
		return isNull(v) && (p.op == opGreaterEqual || p.op == opLessEqual)
	}
	if v.Kind() != p.want.Kind() {
		return false
	}
	order := data.Order(v, p.want)
	switch p.op {
	case opGreater:
		return order > 0
	case opGreaterEqual:
		return order >= 0
	case opLess:
		return order < 0
	}
	return order <= 0
}

func hasSize(v data.Value, n int64) bool {
	if v.Kind() != data.Array {
		return false
	}
	var count int64
	for range v.Elements() {
		if count++; count > n {
			return false
		}
	}
	return count == n
}

// hasBits looks at the bits of an integral number of 64 bits. Bit 63 is the sign and
// stands for all above. Other values have no bits.
func (p *predicate) hasBits(v data.Value) bool {
	n, ok := v.Int64()
	if !ok {
		return false
	}
	switch p.op {
	case opBitsAllSet:
		return n&p.number == p.number
	case opBitsAllClear:
		return n&p.number == 0
	case opBitsAnySet:
		return n&p.number != 0
	}
	return n&p.number != p.number
}
