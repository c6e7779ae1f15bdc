package data_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

func TestFrom(t *testing.T) {
	var deepList, deepMap any = []any{}, map[string]any{}
	for range data.MaxDepth - 1 {
		deepList, deepMap = []any{deepList}, map[string]any{"a": deepMap}
	}
	deep, err := data.From(deepList)
	require.NoError(t, err, "From of %d levels", data.MaxDepth)
	for _, c := range []struct {
		name string
		x    any
		want string
		err  error
	}{
		{"nil", nil, "null", nil},
		{"bool", true, "true", nil},
		{"string", "a\"<é", `"a\"<é"`, nil},
		{"int", -7, "-7", nil},
		{"int8", int8(-8), "-8", nil},
		{"int16", int16(16), "16", nil},
		{"int32", int32(32), "32", nil},
		{"int64", int64(math.MinInt64), "-9223372036854775808", nil},
		{"uint", uint(1), "1", nil},
		{"uint8", uint8(8), "8", nil},
		{"uint16", uint16(16), "16", nil},
		{"uint32", uint32(32), "32", nil},
		{"uint64", uint64(math.MaxUint64), "18446744073709551615", nil},
		{"an integral float has no point", 3.0, "3", nil},
		{"float", 0.1, "0.1", nil},
		{"float32 is not widened", float32(0.1), "0.1", nil},
		{"a large float", 1e21, "1e+21", nil},
		{"a large float without exponent", 1e20, "100000000000000000000", nil},
		{"a small float", 1e-7, "1e-07", nil},
		{"json.Number keeps its spelling", json.Number("1.50e400"), "1.50e400", nil},
		{"Value is taken as it is", data.Value(`{"b":1,"a":1.0}`), `{"b":1,"a":1.0}`, nil},
		{"an absent Value is null", data.Value(nil), "null", nil},
		{"lists", []any{1, "a", nil, []any{}}, `[1,"a",null,[]]`, nil},
		{"a nil list is empty", []any(nil), `[]`, nil},
		{"lists of strings", []string{"a", "b"}, `["a","b"]`, nil},
		{"lists of values", []data.Value{data.Value("1"), nil}, `[1,null]`, nil},
		{"maps are sorted", map[string]any{"b": 1, "a": map[string]any{"z": 1, "y": 2}, "": 3}, `{"":3,"a":{"y":2,"z":1},"b":1}`, nil},
		{"maps of strings", map[string]string{"b": "1", "a": "2"}, `{"a":"2","b":"1"}`, nil},
		{"maps of values", map[string]data.Value{"a": data.Value("1")}, `{"a":1}`, nil},
		{"invalid UTF-8 is replaced", "\xff", "\"\ufffd\"", nil},
		{"NaN", math.NaN(), "", data.ErrType},
		{"an infinity", math.Inf(-1), "", data.ErrType},
		{"a json.Number that is none", json.Number("0x1"), "", data.ErrType},
		{"a json.Number that is a string", json.Number(`"1"`), "", data.ErrType},
		{"an empty json.Number", json.Number(""), "", data.ErrType},
		{"a struct", struct{}{}, "", data.ErrType},
		{"bytes", []byte("x"), "", data.ErrType},
		{"one such thing deep inside", []any{map[string]any{"a": make(chan int)}}, "", data.ErrType},
		{"a key that is not UTF-8", map[string]any{"\xff": 1}, "", data.ErrType},
		{"lists too deep", []any{deepList}, "", data.ErrDepth},
		{"maps too deep", map[string]any{"a": deepMap}, "", data.ErrDepth},
		{"a Value too deep inside a list", []any{deep}, "", data.ErrDepth},
	} {
		got, err := data.From(c.x)
		assert.True(t, errors.Is(err, c.err) && string(got) == c.want, "%s: From(%.80v) = %s, %v, want %s, %v", c.name, c.x, got, err, c.want, c.err)
	}
}

func TestAnyAndFromAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		back, err := data.From(v.Any())
		require.NoError(t, err, "From(Any(%s))", v)
		require.Equal(t, v.Any(), back.Any(), "came back")
		var want any
		want, err = decodeStandard(v)
		if err != nil || !reflect.DeepEqual(v.Any(), want) {
			t.Fatalf("Any of %s = %v, want %v as encoding/json has it", v, v.Any(), want)
		}
	})
}

func TestFloatsReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return
		}
		v, err := data.From(f)
		require.True(t, err == nil && v.Float64() == f, "From(%v) = %s, %v, want a literal that reads back", f, v, err)
		_, err = data.Clean(v)
		require.NoError(t, err, "From(%v) = %s, which is not clean", f, v)
	})
}
