package data

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// rising lists values in their order; those on one line are equal.
var rising = [][]string{
	{``},
	{`null`},
	// Numbers.
	{`-1e99999999999999999`},
	{`-1e1000000000`},
	{`-1e999999999`, `-10e999999998`},
	{`-1e400`},
	{`-9007199254740993`, `-9007199254740993.0`},
	{`-9007199254740992`},
	{`-100`, `-1e2`},
	{`-99.5`},
	{`-99`},
	{`-1.01`},
	{`-1`, `-1.0`, `-10e-1`, `-0.1e1`},
	{`-0.5`},
	{`-1e-400`},
	{`-1e-999999999`},
	{`0`, `-0`, `0.0`, `-0e5`, `0e99999999999999999`},
	{`1e-99999999999999999`},
	{`1e-999999999`},
	{`1e-400`},
	{`1e-101`},
	{`1e-100`},
	{`0.5`, `5e-1`},
	{`0.51`},
	{`1`, `1.0`, `10e-1`, `0.1e1`, `1.` + strings.Repeat("0", 1000)},
	{`1.` + strings.Repeat("0", 1000) + `1`},
	{`1.01`},
	{`9`},
	{`9.9`},
	{`10`, `1e1`},
	{`99`},
	{`100`},
	{`9007199254740992`},
	{`9007199254740993`},
	{`1e98`},
	{`1e99`},
	{`1e100`},
	{`1e400`, `10e399`},
	{`1` + strings.Repeat("0", 1000), `1e1000`},
	{`1e999999999`, `0.1e1000000000`},
	{`1.1e999999999`},
	{`1e1000000000`},
	{`1e99999999999999999`},
	// Strings.
	{`""`},
	{`"\u0000"`},
	{`"\u0000\u0000"`},
	{`"\u0000a"`},
	{`"\u0001"`},
	{`"\u0002"`},
	{`"\n"`, `"\u000a"`},
	{`"a"`, `"\u0061"`},
	{`"a\u0000"`},
	{`"a\u0001"`},
	{`"aa"`},
	{`"ab"`},
	{`"b"`},
	{`"é"`, `"\u00e9"`, `"\u00E9"`},
	{`"\uffff"`},
	{`"😀"`, `"\ud83d\ude00"`},
	{`"\udbff\udfff"`},
	{`"\udbff\udfff\udbff\udfff"`},
	// Objects: the kind of a value comes before the key.
	{`{}`},
	{`{"b":null}`},
	{`{"a":1}`, `{"\u0061":1.0}`},
	{`{"a":1,"b":1}`},
	{`{"a":1,"c":0}`},
	{`{"a":2}`},
	{`{"b":-1}`},
	{`{"a":""}`},
	{`{"a":{}}`},
	{`{"a":{"x":null}}`},
	{`{"a":[]}`},
	{`{"a":false}`},
	// Arrays.
	{`[]`},
	{`[null]`},
	{`[null,null]`},
	{`[1]`},
	{`[1,2]`},
	{`[2]`},
	{`["a"]`},
	{`[{}]`},
	{`[[]]`},
	{`[[],[]]`},
	{`[[null]]`},
	{`[[[]]]`},
	{`[false]`},
	{`[true]`},
	{`false`},
	{`true`},
}

func TestOrderOfEveryPair(t *testing.T) {
	for i, line := range rising {
		for j, other := range rising {
			want := sign(i - j)
			for _, a := range line {
				for _, b := range other {
					if got := sign(Order(Value(a), Value(b))); got != want {
						t.Errorf("Order(%.40s, %.40s) = %d, want %d", a, b, got, want)
					}
					x, y := AppendOrdered(nil, Value(a)), AppendOrdered(nil, Value(b))
					if got := bytes.Compare(x, y); got != want {
						t.Errorf("the encodings of %.40s and %.40s compare as %d, want %d: %x, %x", a, b, got, want, x, y)
					}
					if want != 0 && bytes.HasPrefix(x, y) {
						t.Errorf("the encoding of %.40s begins with that of %.40s", a, b)
					}
				}
			}
		}
	}
}

// TestOrderedEncodingIsKept holds the bytes: they are stored, so a change of
// them needs all indexes built anew.
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
		if got := fmt.Sprintf("%x", AppendOrdered(nil, Value(c.value))); got != c.want {
			t.Errorf("AppendOrdered(%s) = %s, want %s", c.value, got, c.want)
		}
	}
}

func TestOrderedProperties(t *testing.T) {
	values := rapid.OneOf(value(3), value(0), rapid.SampledFrom([]Value{nil}))
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := values.Draw(t, "a"), values.Draw(t, "b"), values.Draw(t, "c")
		if rapid.Bool().Draw(t, "near") {
			b = near(t, a)
		}
		order := sign(Order(a, b))
		if back := sign(Order(b, a)); back != -order {
			t.Fatalf("Order(%s, %s) = %d, and %d the other way round", a, b, order, back)
		}
		if Equal(a, b) != (order == 0) {
			t.Fatalf("Order(%s, %s) = %d, but Equal is %v", a, b, order, Equal(a, b))
		}
		if order <= 0 && Order(b, c) <= 0 && Order(a, c) > 0 {
			t.Fatalf("%s, %s, %s: the order is not transitive", a, b, c)
		}
		if a.Kind() == Number && b.Kind() == Number && order != sign(Compare(a, b)) {
			t.Fatalf("Order(%s, %s) = %d, Compare says %d", a, b, order, Compare(a, b))
		}
		x, y := AppendOrdered([]byte("head"), a), AppendOrdered(nil, b)
		if !bytes.HasPrefix(x, []byte("head")) {
			t.Fatalf("AppendOrdered(head, %s) = %x, want it to append", a, x)
		}
		x = x[4:]
		if got := bytes.Compare(x, y); got != order {
			t.Fatalf("the encodings of %s and %s compare as %d, want %d: %x, %x", a, b, got, order, x, y)
		}
		if order != 0 && (bytes.HasPrefix(x, y) || bytes.HasPrefix(y, x)) {
			t.Fatalf("the encoding of one of %s and %s begins with the other: %x, %x", a, b, x, y)
		}
		if (x[0] == y[0]) != (a.Kind() == b.Kind()) || x[0] == 0xFF {
			t.Fatalf("%s and %s begin with %x and %x", a, b, x[0], y[0])
		}
		if a.Kind() == String && b.Kind() == String {
			if got, want := bytes.HasPrefix(y, x[:len(x)-1]), strings.HasPrefix(b.Text(), a.Text()); got != want {
				t.Fatalf("%s begins with %s by its encoding: %v, want %v", b, a, got, want)
			}
		}
		n := rapid.IntRange(0, len(x)+1).Draw(t, "n")
		if got, want := AppendOrderedPrefix([]byte("head"), a, n), "head"+string(x[:min(n, len(x))]); string(got) != want {
			t.Fatalf("AppendOrderedPrefix(head, %s, %d) = %x, want %x", a, n, got, want)
		}
	})
}

// near draws a value that differs from v in little, if at all.
func near(t *rapid.T, v Value) Value {
	old := rapid.SampledFrom([]string{"1", "0", "a", "null", "true", ",", "]", "}"}).Draw(t, "old")
	text := rapid.SampledFrom([]string{"1", "10", "b", "null", "false", `,"z":1}`, ",1]", "}", "]", ","}).Draw(t, "new")
	if out, err := Clean([]byte(strings.Replace(v.String(), old, text, 1))); err == nil {
		return out
	}
	return v
}

// TestOrderOnOtherBytes: what is no Value gets nonsense, but no panic.
func TestOrderOnOtherBytes(t *testing.T) {
	for _, s := range []string{
		`[`, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":}`, `{1:2}`, `{,}`, `[,,]`, `"`, `"\`, `"\u12`, `]`, `:`, `-`, `1e`, `{"a":1,"b"`,
		strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000), strings.Repeat("[,", 1000), "\x00", "\xff\xff",
	} {
		for _, other := range []string{`1`, `[[1]]`, `{"a":1}`, s, s + "x"} {
			Order(Value(s), Value(other))
			Order(Value(other), Value(s))
		}
		AppendOrdered(nil, Value(s))
		AppendOrderedPrefix(nil, Value(s), 3)
	}
}

func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		value string
		want  int64
		ok    bool
	}{
		{`5`, 5, true},
		{`-5`, -5, true},
		{`2.5`, 2, true},
		{`-2.9`, -2, true},
		{`0.99`, 0, true},
		{`-0.5`, 0, true},
		{`-0`, 0, true},
		{`25e-1`, 2, true},
		{`1e2`, 100, true},
		{`1e-99999999999999999`, 0, true},
		{`9007199254740993.5`, 9007199254740993, true},
		{`9223372036854775807.9`, 9223372036854775807, true},
		{`-9223372036854775808.9`, -9223372036854775808, true},
		{`9223372036854775808`, 0, false},
		{`-9223372036854775809`, 0, false},
		{`99999999999999999999`, 0, false},
		{`1e400`, 0, false},
		{`1e99999999999999999`, 0, false},
		{`"5"`, 0, false},
		{`null`, 0, false},
		{``, 0, false},
	} {
		got, ok := Value(c.value).Truncate()
		if ok != c.ok || ok && got != c.want {
			t.Errorf("Truncate(%s) = %d, %v, want %d, %v", c.value, got, ok, c.want, c.ok)
		}
	}
}

func TestOrderAllocatesNothing(t *testing.T) {
	a := body()
	b := Value(strings.Replace(a.String(), "null]", "true]", 1))
	dst := make([]byte, 0, 2*len(a))
	for name, f := range map[string]func(){
		"Order":               func() { Order(a, b) },
		"AppendOrdered":       func() { AppendOrdered(dst, a) },
		"AppendOrderedPrefix": func() { AppendOrderedPrefix(dst, a, 64) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times, want 0", name, n)
		}
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
		{"Nested", strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1)},
	} {
		v := Value(c.value)
		// Equal but for the end, so that all is read.
		first, second := Value("["+c.value+",1]"), Value("["+c.value+",2]")
		b.Run("Append/"+c.name, func(b *testing.B) {
			dst := AppendOrdered(nil, v)
			b.SetBytes(int64(len(v)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendOrdered(dst[:0], v)
			}
		})
		b.Run("Order/"+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(v)))
			b.ReportAllocs()
			for b.Loop() {
				Order(first, second)
			}
		})
	}
}
