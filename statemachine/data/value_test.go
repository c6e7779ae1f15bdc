package data

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
)

func TestKind(t *testing.T) {
	for src, want := range map[string]Kind{
		"": Absent, "null": Null, "true": Bool, "false": Bool, "0": Number, "-1": Number, `""`: String, "[]": Array, "{}": Object,
	} {
		assert.Equal(t, want, Value(src).Kind(), "Kind of %q", src)
	}
	assert.Equal(t, "unknown", Kind(99).String(), "an unknown kind is called")
}

func TestLookup(t *testing.T) {
	v := mustClean(t, `{"a":1,"nested":{"b":2,"a":3},"list":[{"a":4}],"\u0062":5,"c\n":6,"":7,"x\\":8,"text":"\"b\":9,","d.e":10,"last":11}`)
	for _, c := range []struct {
		name, key, want string
		ok              bool
	}{
		{"the first member", "a", "1", true},
		{"the last member", "last", "11", true},
		{"an object", "nested", `{"b":2,"a":3}`, true},
		{"a member spelled with an escape, not the nested one", "b", "5", true},
		{"a key with a line break", "c\n", "6", true},
		{"the empty key", "", "7", true},
		{"a key that ends in a backslash", `x\`, "8", true},
		{"the raw spelling is not the key", `c\n`, "", false},
		{"a key with a dot is one key", "d.e", "10", true},
		{"keys are case-sensitive", "A", "", false},
		{"a missing key", "zzz", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := v.Lookup(c.key)
			assert.True(t, string(got) == c.want && ok == c.ok, "Lookup(%q) = %s, %v, want %s, %v", c.key, got, ok, c.want, c.ok)
		})
	}
	for _, other := range []string{"", "null", "1", `"a"`, `[{"a":1}]`, "{}"} {
		got, ok := Value(other).Lookup("a")
		assert.False(t, ok, "Lookup in %q = %s, want nothing", other, got)
	}
}

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
	for range Value(`[{"a":1}]`).Match([]string{"a"}) {
		t.Error("Match in an array has a member, want none")
	}
	other := Value(`{"name":1,"other":2}`)
	n := testing.AllocsPerRun(100, func() {
		for i, member := range other.Match([]string{"name"}) {
			if i == 0 && len(member) != 1 {
				t.Error("Match has another value")
			}
		}
	})
	assert.Zero(t, n, "Match made")
}

func TestIndex(t *testing.T) {
	v := mustClean(t, `[1,[2,3],{"a":"]"},"]",null]`)
	for i, want := range []string{"1", "[2,3]", `{"a":"]"}`, `"]"`, "null"} {
		got, ok := v.Index(i)
		assert.True(t, ok && string(got) == want, "Index(%d) = %s, %v, want %s, true", i, got, ok, want)
	}
	for _, i := range []int{-1, 5} {
		got, ok := v.Index(i)
		assert.False(t, ok, "Index(%d) = %s, want nothing", i, got)
	}
	for _, other := range []string{"", "1", "{}", "[]", `{"0":1}`} {
		got, ok := Value(other).Index(0)
		assert.False(t, ok, "Index(0) of %q = %s, want nothing", other, got)
	}
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

func TestDepth(t *testing.T) {
	for src, want := range map[string]int{
		"": 0, "1": 0, `"[["`: 0, "[]": 1, `{"a":1}`: 1, `{"[":[1,[2]],"b":{}}`: 3, strings.Repeat("[", 64) + strings.Repeat("]", 64): 64,
	} {
		assert.Equal(t, want, Value(src).Depth(), "Depth of %.20s", src)
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`""`, ""},
		{`"abc"`, "abc"},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0041\u00e9\u20AC"`, "Aé€"},
		{`"a\ud83d\ude00b"`, "a😀b"},
		{`"\u0000"`, "\x00"},
		{`1`, ""},
		{`null`, ""},
		{``, ""},
	} {
		v := Value(c.src)
		assert.Equal(t, c.want, v.Text(), "Text of %s", c.src)
		assert.Equal(t, v.Kind() == String, v.TextIs(c.want), "TextIs(%q) of %s", c.want, c.src)
		assert.False(t, v.TextIs(c.want+"x"), "TextIs(%q) of %s = true, want false", c.want+"x", c.src)
	}
}

func TestEqualAgreesWithDecodedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := value(2).Draw(t, "a")
		b := rapid.OneOf(value(2), rapid.Just(respell(a))).Draw(t, "b")
		require.Equal(t, reflect.DeepEqual(ordered(a), ordered(b)), Equal(a, b), "Equal(%s, %s)", a, b)
	})
}

// respell writes v with the standard library: other escapes, same order.
func respell(v Value) Value {
	b, _ := json.Marshal(v)
	return b
}

// ordered decodes v so that reflect.DeepEqual means Equal: members as a list,
// numbers as exact fractions.
func ordered(v Value) any {
	switch v.Kind() {
	case Object:
		list := []any{"object"}
		for _, k := range keysOf(v) {
			part, _ := v.Lookup(k)
			list = append(list, k, ordered(part))
		}
		return list
	case Array:
		list := []any{"array"}
		for _, e := range v.Elements() {
			list = append(list, ordered(e))
		}
		return list
	case Number:
		return "number " + ratOf(v)
	}
	return v.Any()
}

func TestAppendString(t *testing.T) {
	for _, c := range []struct{ s, want string }{
		{"", `""`},
		{"abc", `"abc"`},
		{"\"\\/\b\f\n\r\t", `"\"\\/\b\f\n\r\t"`},
		{"\x00\x1f\x7f", `"\u0000\u001f` + "\x7f\""},
		{"<a href='x'>&</a>", `"<a href='x'>&</a>"`},
		{"é€😀\u2028", "\"é€😀\u2028\""},
		{"\xff", "\"\ufffd\""},
		{"a\xed\xa0\x80b", "\"a\ufffd\ufffd\ufffdb\""},
		{"\ufffd", "\"\ufffd\""},
	} {
		assert.Equal(t, "x"+c.want, string(AppendString([]byte("x"), c.s)), "AppendString(x, %q), %s", c.s, c.want)
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\x00\xff😀")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Clean(AppendString(nil, s))
		require.NoError(t, err, "AppendString(%q) is not valid", s)
		want := s
		if !utf8.ValidString(s) {
			want = string([]rune(s))
		}
		require.Equal(t, want, v.Text(), "AppendString(%q) reads back", s)
	})
}

func TestJSONLibrariesSeeAValueAsJSON(t *testing.T) {
	type reply struct{ A, B Value }
	got := mustMarshal(t, reply{A: Value(`{"x":1}`)})
	assert.Equal(t, `{"A":{"x":1},"B":null}`, got, "json.Marshal")
}
