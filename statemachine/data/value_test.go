package data_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

func TestMatch(t *testing.T) {
	v := mustClean(t, `{"b":1,"x":{"a":2},"\u0061":3,"b.c":4}`)
	got := ""
	for i, member := range v.Match([]string{"a", "b"}) {
		got += fmt.Sprint(i, "=", member, " ")
	}
	assert.Equal(t, `1=1 -1={"a":2} 0=3 -1=4 `, got, "Match")
	for i, member := range v.Match(nil) {
		assert.True(t, i == -1 && string(member) == "1", "Match of no keys = %d, %s first, want -1, 1", i, member)
		break
	}
	for range data.Value(`[{"a":1}]`).Match([]string{"a"}) {
		t.Error("Match in an array has a member, want none")
	}
	other, names := data.Value(`{"name":1,"other":2}`), []string{"name"}
	n := testing.AllocsPerRun(100, func() {
		for i, member := range other.Match(names) {
			if i == 0 && len(member) != 1 {
				t.Error("Match has another value")
			}
		}
	})
	assert.Zero(t, n, "Match made")
}

func TestMembersAndElementsCanBeLeftEarly(t *testing.T) {
	var keys []string
	for k := range mustClean(t, `{"a":1,"b":2,"c":3}`).Members() {
		if keys = append(keys, k); k == "b" {
			break
		}
	}
	assert.Equal(t, "a,b", strings.Join(keys, ","), "keys until b")
	n := 0
	for i := range mustClean(t, `[1,2,3]`).Elements() {
		if n++; i == 1 {
			break
		}
	}
	assert.Equal(t, 2, n, "elements until position 1")
}

func TestPartsDoNotReachIntoTheirNeighbours(t *testing.T) {
	v := mustClean(t, `{"a":1,"b":[2,3]}`)
	before := v.String()
	a, _ := v.Lookup("a")
	_ = append(a, 'x')
	list, _ := v.Lookup("b")
	first, _ := list.Index(0)
	_ = append(first, 'x')
	assert.Equal(t, before, v.String(), "after appends to its parts the value")
}

func TestEqualAgreesWithDecodedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := value(2).Draw(t, "a")
		b := rapid.OneOf(value(2), rapid.Just(respell(a))).Draw(t, "b")
		require.Equal(t, reflect.DeepEqual(ordered(a), ordered(b)), data.Equal(a, b), "Equal(%s, %s)", a, b)
	})
}

func respell(v data.Value) data.Value {
	b, _ := json.Marshal(v)
	return b
}

// ordered decodes v so that reflect.DeepEqual means Equal: members as a list, numbers as exact fractions.
func ordered(v data.Value) any {
	switch v.Kind() {
	case data.Object:
		list := []any{"object"}
		for _, k := range keysOf(v) {
			part, _ := v.Lookup(k)
			list = append(list, k, ordered(part))
		}
		return list
	case data.Array:
		list := []any{"array"}
		for _, e := range v.Elements() {
			list = append(list, ordered(e))
		}
		return list
	case data.Number:
		return "number " + ratOf(v)
	}
	return v.Any()
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\x00\xff😀")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := data.Clean(data.AppendString(nil, s))
		require.NoError(t, err, "AppendString(%q) is not valid", s)
		want := s
		if !utf8.ValidString(s) {
			want = string([]rune(s))
		}
		require.Equal(t, want, v.Text(), "AppendString(%q) reads back", s)
	})
}

func TestJSONLibrariesSeeAValueAsJSON(t *testing.T) {
	type reply struct{ A, B data.Value }
	got := mustMarshal(t, reply{A: data.Value(`{"x":1}`)})
	assert.Equal(t, `{"A":{"x":1},"B":null}`, got, "json.Marshal")
}
