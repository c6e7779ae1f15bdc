package filter

import (
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
)

func operatorOf(v data.Value) (operator string, ok bool, err error) {
	for key := range v.Members() {
		if key == "$oid" {
			if _, ok := objectID(v); !ok {
				return "", false, fmt.Errorf("%w: $oid takes a text and no other operator", ErrSyntax)
			}
			return "", false, nil
		}
		return key, strings.HasPrefix(key, "$"), nil
	}
	return "", false, nil
}

var comparisons = map[string]op{
	"$eq": opEqual, "$ne": opEqual, "$gt": opGreater, "$gte": opGreaterEqual, "$lt": opLess, "$lte": opLessEqual,
}

var bitOperators = map[string]op{
	"$bitsAllSet": opBitsAllSet, "$bitsAllClear": opBitsAllClear, "$bitsAnySet": opBitsAnySet, "$bitsAnyClear": opBitsAnyClear,
}

func (p *parser) operators(s *subject, object data.Value) ([]node, error) {
	var all []node
	for operator, operand := range object.Members() {
		nodes, err := p.operator(s, operator, operand, object)
		if err != nil {
			return nil, err
		}
		all = append(all, nodes...)
	}
	return all, nil
}

func (p *parser) operator(s *subject, operator string, operand, object data.Value) ([]node, error) {
	switch operator {
	case "$ne", "$nin":
		return negated(p.simple(s, operator, operand))
	case "$not":
		if _, ok, err := operatorOf(operand); err != nil {
			return nil, err
		} else if !ok {
			return nil, malformed(operator, "takes an object of operators")
		}
		return negated(p.operators(s, operand))
	case "$exists":
		nodes, err := p.condition(s, predicate{op: opExists})
		if !isTrue(operand) {
			return negated(nodes, err)
		}
		return nodes, err
	case "$all":
		return p.allValues(s, operand)
	case "$elemMatch":
		return p.elementMatch(s, operand)
	case "$regex":
		options, _ := object.Lookup("$options")
		what, err := p.regularExpression(operand, options)
		if err != nil {
			return nil, err
		}
		return p.condition(s, what)
	case "$options":
		if _, ok := object.Lookup("$regex"); !ok {
			return nil, malformed(operator, "needs a $regex beside it")
		}
		return nil, nil
	}
	return p.simple(s, operator, operand)
}

func (p *parser) simple(s *subject, operator string, operand data.Value) ([]node, error) {
	var what predicate
	var err error
	switch operator {
	case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte":
		what = predicate{op: comparisons[operator], want: plain(operand)}
	case "$in", "$nin":
		what, err = parseIn(operator, operand)
	case "$type":
		what.op = opKind
		what.kinds, err = parseKinds(operand)
	case "$size":
		n, ok := operand.Int64()
		if !ok || n < 0 {
			err = malformed(operator, "takes a number that is integral and not negative")
		}
		what = predicate{op: opSize, number: n}
	case "$mod":
		what, err = parseMod(operand)
	case "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear":
		what.op = bitOperators[operator]
		what.number, err = parseBits(operator, operand)
	default:
		if !strings.HasPrefix(operator, "$") {
			return nil, fmt.Errorf("%w: %s stands among operators and is none", ErrSyntax, data.Quote(operator))
		}
		err = unsupported(operator)
	}
	if err != nil {
		return nil, err
	}
	return p.condition(s, what)
}

// isTrue is how $exists reads its operand: like MongoDB it takes anything.
func isTrue(v data.Value) bool {
	switch v.Kind() {
	case data.Null:
		return false
	case data.Bool:
		return v[0] == 't'
	case data.Number:
		return data.Compare(v, data.Value("0")) != 0
	}
	return true
}

func parseIn(operator string, operand data.Value) (predicate, error) {
	if operand.Kind() != data.Array {
		return predicate{}, malformed(operator, "takes an array")
	}
	var list []data.Value
	for _, e := range operand.Elements() {
		if inner, ok, err := operatorOf(e); err != nil {
			return predicate{}, err
		} else if ok {
			return predicate{}, malformed(operator, "takes values and not the operator "+data.Quote(inner))
		}
		list = append(list, plain(e))
	}
	slices.SortFunc(list, data.Order)
	list = slices.CompactFunc(list, data.Equal)
	switch len(list) {
	case 0:
		return predicate{op: opNever}, nil
	case 1:
		return predicate{op: opEqual, want: list[0]}, nil
	}
	return predicate{op: opIn, list: list}, nil
}

func parseKinds(operand data.Value) (kinds, error) {
	if operand.Kind() != data.Array {
		return parseKind(operand)
	}
	var all kinds
	for _, e := range operand.Elements() {
		k, err := parseKind(e)
		if err != nil {
			return 0, err
		}
		all |= k
	}
	if _, ok := operand.Index(0); !ok {
		return 0, malformed("$type", "takes a list that is not empty")
	}
	return all, nil
}

func parseKind(operand data.Value) (kinds, error) {
	var k kinds
	var ok bool
	if operand.Kind() == data.String {
		k, ok = kindNames[operand.Text()]
	} else if code, isInteger := operand.Int64(); isInteger {
		k, ok = kindCodes[code]
	}
	if !ok {
		return 0, malformed("$type", "knows no type "+data.Quote(operand.String()))
	}
	return k, nil
}

func parseMod(operand data.Value) (predicate, error) {
	var numbers []int64
	for _, e := range operand.Elements() {
		n, ok := e.Truncate()
		if !ok {
			return predicate{}, malformed("$mod", "takes numbers of at most 64 bits")
		}
		numbers = append(numbers, n)
	}
	if len(numbers) != 2 {
		return predicate{}, malformed("$mod", "takes an array of two numbers")
	}
	if numbers[0] == 0 {
		return predicate{}, malformed("$mod", "cannot divide by 0")
	}
	return predicate{op: opRemainder, number: numbers[0], remainder: numbers[1]}, nil
}

func parseBits(operator string, operand data.Value) (int64, error) {
	const why = "takes a number that is integral and not negative, or an array of those"
	if operand.Kind() != data.Array {
		mask, ok := operand.Int64()
		if !ok || mask < 0 {
			return 0, malformed(operator, why)
		}
		return mask, nil
	}
	var mask uint64
	for _, e := range operand.Elements() {
		place, ok := e.Int64()
		if !ok || place < 0 {
			return 0, malformed(operator, why)
		}
		mask |= 1 << min(place, 63)
	}
	return int64(mask), nil
}

// allValues reads $all: each value, or each $elemMatch, is a condition of its own.
func (p *parser) allValues(s *subject, operand data.Value) ([]node, error) {
	if operand.Kind() != data.Array {
		return nil, malformed("$all", "takes an array")
	}
	var all []node
	elementMatches := 0
	for i, e := range operand.Elements() {
		inner, isOperator, err := operatorOf(e)
		if err != nil {
			return nil, err
		}
		var nodes []node
		switch {
		case !isOperator:
			nodes, err = p.condition(s, predicate{op: opEqual, want: plain(e)})
		case inner == "$elemMatch" && isSingle(e):
			elementMatches++
			nodes, err = p.operators(s, e)
		default:
			return nil, malformed("$all", "takes values, or $elemMatch, and not the operator "+data.Quote(inner))
		}
		if err != nil {
			return nil, err
		}
		if elementMatches != 0 && elementMatches != i+1 {
			return nil, malformed("$all", "takes values or $elemMatch, and not both")
		}
		all = append(all, nodes...)
	}
	if len(all) == 0 {
		return p.condition(s, predicate{op: opNever})
	}
	return all, nil
}

func isSingle(v data.Value) bool {
	n := 0
	for range v.Members() {
		n++
	}
	return n == 1
}

// elementMatch reads $elemMatch. When its first key is an operator, but none that combines, the conditions are on the element as
// a value; otherwise they are on the element as a document.
func (p *parser) elementMatch(s *subject, operand data.Value) ([]node, error) {
	if operand.Kind() != data.Object {
		return nil, malformed("$elemMatch", "takes an object")
	}
	inner, isOperator, err := operatorOf(operand)
	if err != nil {
		return nil, err
	}
	what := predicate{op: opElement}
	switch {
	case isOperator && inner != "$and" && inner != "$or" && inner != "$nor":
		what.nodes, err = p.operators(&subject{root: rootValue, positions: s.positions}, operand)
	default:
		if _, isID := objectID(operand); isID {
			return nil, unsupported("$oid")
		}
		what.documents = true
		what.nodes, err = p.document(operand, s)
	}
	if err != nil {
		return nil, err
	}
	return p.condition(s, what)
}

// plain returns v with every {"$oid": s} in it replaced by s.
func plain(v data.Value) data.Value {
	switch v.Kind() {
	case data.Object:
		if id, ok := objectID(v); ok {
			return id
		}
		out := []byte{'{'}
		for key, member := range v.Members() {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(data.AppendString(out, key), ':')
			out = append(out, plain(member)...)
		}
		return append(out, '}')
	case data.Array:
		out := []byte{'['}
		for i, e := range v.Elements() {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, plain(e)...)
		}
		return append(out, ']')
	}
	return v
}

func objectID(v data.Value) (data.Value, bool) {
	var id data.Value
	for key, member := range v.Members() {
		if key != "$oid" || id != nil {
			return nil, false
		}
		id = member
	}
	return id, id.Kind() == data.String
}
