package data_test

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

// checkPair demands that a comes before b, is equal or comes behind, as want says, by everything that compares values.
func checkPair(t interface{ Errorf(string, ...any) }, a, b data.Value, want int) {
	x, y := data.AppendOrdered(nil, a), data.AppendOrdered(nil, b)
	numbers, texts := want, want
	if a.Kind() != data.Number || b.Kind() != data.Number {
		numbers = 0 // Compare has no order for others
	}
	if a.Kind() != data.String || b.Kind() != data.String {
		texts = 0
	}
	for name, c := range map[string]struct{ got, want int }{
		"Order": {data.Order(a, b), want}, "the encodings": {bytes.Compare(x, y), want}, "Compare": {data.Compare(a, b), numbers}, "CompareText": {data.CompareText(a, b), texts},
	} {
		assert.Equal(t, c.want, cmp.Compare(c.got, 0), "%s of %.40s and %.40s", name, a, b)
	}
	assert.Equal(t, want == 0, data.Equal(a, b), "Equal(%.40s, %.40s)", a, b)
	assert.False(t, want != 0 && bytes.HasPrefix(x, y), "the encoding of %.40s begins with that of %.40s: %x, %x", a, b, x, y)
	if (x[0] == y[0]) != (a.Kind() == b.Kind()) || x[0] == 0xFF {
		t.Errorf("%.40s and %.40s begin with %x and %x", a, b, x[0], y[0])
	}
	if a.Kind() == data.String && b.Kind() == data.String {
		assert.Equal(t, want, strings.Compare(a.Text(), b.Text()), "the texts of %s and %s compare", a, b)
		assert.Equal(t, strings.HasPrefix(b.Text(), a.Text()), bytes.HasPrefix(y, x[:len(x)-1]), "%s begins with %s by its encoding", b, a)
	}
}

// TestOrderedEncodingIsKept holds the bytes: they are stored, so a change of them needs all indexes built anew.
func TestOrderedEncodingIsKept(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{``, "10"},
		{`null`, "20"},
		{`0`, "3002"},
		{`1`, "30038114"},
		{`12345`, "300385194564"},
		{`-12345`, "30017ae6ba9b"},
		{`1e999999999`, "3003ff000000003b9aca0014"},
		{`-1e-999999999`, "3001ff800000003b9ac9fdeb"},
		{`""`, "4000"},
		{`"a\u0000\u0001"`, "40610101010200"},
		{`{"a":[true]}`, "50606100700100" + "00"},
		{`false`, "7000"},
	} {
		assert.Equal(t, c.want, fmt.Sprintf("%x", data.AppendOrdered(nil, data.Value(c.value))), "AppendOrdered(%s)", c.value)
	}
}

func TestOrderedProperties(t *testing.T) {
	values := rapid.OneOf(value(3), value(0), rapid.SampledFrom([]data.Value{nil}))
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := values.Draw(t, "a"), values.Draw(t, "b"), values.Draw(t, "c")
		if rapid.Bool().Draw(t, "near") {
			b = near(t, a)
		}
		order := cmp.Compare(data.Order(a, b), 0)
		checkPair(t, a, b, order)
		checkPair(t, b, a, -order)
		require.False(t, order <= 0 && data.Order(b, c) <= 0 && data.Order(a, c) > 0, "%s, %s, %s: the order is not transitive", a, b, c)
		encoding := "head" + string(data.AppendOrdered(nil, a))
		require.Equal(t, encoding, string(data.AppendOrdered([]byte("head"), a)), "AppendOrdered(head, %s)", a)
		n := rapid.IntRange(0, len(encoding)).Draw(t, "n")
		got, want := data.AppendOrderedPrefix([]byte("head"), a, n), encoding[:min(4+n, len(encoding))]
		require.Equal(t, want, string(got), "AppendOrderedPrefix(head, %s, %d)", a, n)
	})
}

func near(t *rapid.T, v data.Value) data.Value {
	old := rapid.SampledFrom([]string{"1", "0", "a", "null", "true", ",", "]", "}"}).Draw(t, "old")
	text := rapid.SampledFrom([]string{"1", "10", "b", "null", "false", `,"z":1}`, ",1]", "}", "]", ","}).Draw(t, "new")
	if out, err := data.Clean([]byte(strings.Replace(v.String(), old, text, 1))); err == nil {
		return out
	}
	return v
}

func TestOrderAllocatesNothing(t *testing.T) {
	a := body()
	b := data.Value(strings.Replace(a.String(), "null]", "true]", 1))
	dst := make([]byte, 0, 2*len(a))
	for name, f := range map[string]func(){
		"Order":               func() { data.Order(a, b) },
		"AppendOrdered":       func() { data.AppendOrdered(dst, a) },
		"AppendOrderedPrefix": func() { data.AppendOrderedPrefix(dst, a, 64) },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, f), "%s allocates", name)
	}
}

// BenchmarkOrdered has the values that indexes are made of, and hostile ones of
// 100 KB: twice the length must cost twice the time.
func BenchmarkOrdered(b *testing.B) {
	for _, c := range []struct{ name, value string }{
		{"Integer", `1830`},
		{"Fraction", `1830.75`},
		{"Text", `"c-81726"`},
		{"Escaped", `"K\u00f6nigsallee"`},
		{"Body1KB", body().String()},
		{"Digits100KB", strings.Repeat("1", 100_000)},
		{"Zeros100KB", "1" + strings.Repeat("0", 100_000)},
		{"Exponent", `1e99999999999999999`},
		{"Nested", strings.Repeat("[", data.MaxDepth-1) + strings.Repeat("]", data.MaxDepth-1)},
	} {
		v := data.Value(c.value)
		// Equal but for the end, so that all is read.
		first, second := data.Value("["+c.value+",1]"), data.Value("["+c.value+",2]")
		dst := data.AppendOrdered(nil, v)
		measure(b, "Append/"+c.name, len(v), func() { dst = data.AppendOrdered(dst[:0], v) })
		measure(b, "Order/"+c.name, len(v), func() { data.Order(first, second) })
	}
}
