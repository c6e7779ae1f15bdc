package data

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// From returns the JSON form of a Go value: nil, bool, any integer, float32, float64, string, json.Number, Value (absent is
// null), and []any, []string, []Value, map[string]any, map[string]string and map[string]Value of them. Maps are written in
// ascending order of their keys. Invalid UTF-8 in a string becomes U+FFFD. Errors wrap ErrType (also for NaN, infinities and keys
// that are not UTF-8) or ErrDepth.
func From(x any) (Value, error) {
	return appendAny(nil, x, 0)
}

// appendAny appends the JSON form of x, which is inside depth objects and arrays.
func appendAny(dst []byte, x any, depth int) ([]byte, error) {
	switch x := x.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, x), nil
	case string:
		return AppendString(dst, x), nil
	case Value:
		return appendValue(dst, x, depth)
	case json.Number:
		return appendLiteral(dst, x)
	case []any:
		return appendSlice(dst, x, depth)
	case []string:
		return appendSlice(dst, x, depth)
	case []Value:
		return appendSlice(dst, x, depth)
	case map[string]any:
		return appendMap(dst, x, depth)
	case map[string]string:
		return appendMap(dst, x, depth)
	case map[string]Value:
		return appendMap(dst, x, depth)
	}
	return appendNumber(dst, x)
}

func appendNumber(dst []byte, x any) ([]byte, error) {
	switch x := x.(type) {
	case int:
		return strconv.AppendInt(dst, int64(x), 10), nil
	case int64:
		return strconv.AppendInt(dst, x, 10), nil
	case int8, int16, int32, uint, uint8, uint16, uint32, uint64:
		return fmt.Append(dst, x), nil
	case float32:
		return appendFloat(dst, float64(x), 32)
	case float64:
		return appendFloat(dst, x, 64)
	}
	return nil, fmt.Errorf("%w: %T", ErrType, x)
}

// appendFloat writes the shortest literal that reads back as f, with an
// exponent only for the very large and the very small, as browsers do.
func appendFloat(dst []byte, f float64, bits int) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%w: %v", ErrType, f)
	}
	format := byte('f')
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, bits), nil
}

// appendLiteral appends a number as it is spelled. json.Number is a string that anybody can have made, so it is checked.
func appendLiteral(dst []byte, n json.Number) ([]byte, error) {
	v, err := Clean([]byte(n))
	if err != nil || v.Kind() != Number {
		return nil, fmt.Errorf("%w: json.Number %s", ErrType, Quote(string(n)))
	}
	return append(dst, v...), nil
}

// appendValue appends v. Its maker promises that it is valid; its depth counts from the value that it is put into.
func appendValue(dst []byte, v Value, depth int) ([]byte, error) {
	if len(v) == 0 {
		return append(dst, "null"...), nil
	}
	if depth > 0 && depth+v.Depth() > MaxDepth {
		return nil, ErrDepth
	}
	return append(dst, v...), nil
}

func appendSlice[T any](dst []byte, list []T, depth int) ([]byte, error) {
	if depth == MaxDepth {
		return nil, ErrDepth
	}
	dst = append(dst, '[')
	var err error
	for i, x := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendAny(dst, x, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// appendMap appends a map as an object. The order of a Go map is random, so keys
// are sorted: the same value must always give the same bytes.
func appendMap[T any](dst []byte, m map[string]T, depth int) ([]byte, error) {
	if depth == MaxDepth {
		return nil, ErrDepth
	}
	dst = append(dst, '{')
	var err error
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !utf8.ValidString(k) { // after a repair two keys might be the same
			return nil, fmt.Errorf("%w: a key that is not UTF-8", ErrType)
		}
		dst = append(AppendString(dst, k), ':')
		if dst, err = appendAny(dst, m[k], depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// Any decodes v into nil, bool, json.Number, string, []any and map[string]any, for libraries that want such values. Nothing of
// the result shares memory with v. An absent value is nil.
func (v Value) Any() any {
	if len(v) == 0 {
		return nil
	}
	x, _ := decodeAny(v, 0, 0)
	return x
}

// decodeAny decodes the value at src[i] and returns the offset behind it.
func decodeAny(src []byte, i, depth int) (any, int) {
	if i >= len(src) || depth > MaxDepth {
		return nil, len(src)
	}
	switch src[i] {
	case '{':
		object := make(map[string]any)
		w := members{src: src, at: i + 1}
		for w.nextKey() {
			key := decode(w.key)
			object[key], w.at = decodeAny(src, w.at, depth+1)
		}
		return object, w.at + 1
	case '[':
		// NB: never nil, since an empty array is not null.
		list := []any{}
		i++
		for i < len(src) && src[i] != ']' && src[i] != '}' {
			var x any
			x, i = decodeAny(src, i, depth+1)
			list = append(list, x)
			if i < len(src) && src[i] == ',' {
				i++
			}
		}
		return list, i + 1
	}
	end := skip(src, i)
	v := Value(src[i:end])
	switch v.Kind() {
	case Bool:
		return v[0] == 't', end
	case String:
		return v.Text(), end
	case Number:
		return json.Number(v), end
	}
	return nil, end
}
