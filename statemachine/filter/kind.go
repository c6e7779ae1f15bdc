package filter

import (
	"bytes"

	"troupe/statemachine/data"
)

type kinds uint8

const (
	kindDouble kinds = 1 << iota
	kindString
	kindObject
	kindArray
	kindBool
	kindNull
	kindInt
	kindLong
	// kindOther are those of MongoDB that JSON does not have: nothing is of them.
	kindOther kinds = 0
)

// kindNames and kindCodes are how $type may name a type (MongoDB manual, "BSON Types").
var (
	kindNames = map[string]kinds{
		"double": kindDouble, "string": kindString, "object": kindObject, "array": kindArray, "bool": kindBool,
		"null": kindNull, "int": kindInt, "long": kindLong, "number": kindDouble | kindInt | kindLong,
		"binData": kindOther, "undefined": kindOther, "objectId": kindOther, "date": kindOther, "regex": kindOther,
		"dbPointer": kindOther, "javascript": kindOther, "symbol": kindOther, "javascriptWithScope": kindOther,
		"timestamp": kindOther, "decimal": kindOther, "minKey": kindOther, "maxKey": kindOther,
	}
	kindCodes = map[int64]kinds{
		1: kindDouble, 2: kindString, 3: kindObject, 4: kindArray, 8: kindBool, 10: kindNull, 16: kindInt, 18: kindLong,
		5: kindOther, 6: kindOther, 7: kindOther, 9: kindOther, 11: kindOther, 12: kindOther, 13: kindOther,
		14: kindOther, 15: kindOther, 17: kindOther, 19: kindOther, -1: kindOther, 127: kindOther,
	}
)

func (k kinds) have(v data.Value) bool {
	switch v.Kind() {
	case data.Null:
		return k&kindNull != 0
	case data.Bool:
		return k&kindBool != 0
	case data.String:
		return k&kindString != 0
	case data.Array:
		return k&kindArray != 0
	case data.Object:
		return k&kindObject != 0
	case data.Number:
		return k&numberKind(v) != 0
	}
	return false
}

// numberKind tells by the spelling, as MongoDB does when it reads JSON: an
// integer has no fraction and no exponent, and beyond 64 bits it is a double.
func numberKind(v data.Value) kinds {
	n, ok := v.Int64()
	switch {
	case !ok || bytes.ContainsAny(v, ".eE"):
		return kindDouble
	case n == int64(int32(n)):
		return kindInt
	}
	return kindLong
}
