package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/cputest"
)

func TestCleanRepeatsLittleOfTheInput(t *testing.T) {
	for _, unit := range []string{"x", "\x1b", "\"", "é", "\U0010ffff", `\\`} {
		key := mustMarshal(t, strings.Repeat(unit, 1000))
		_, err := Clean([]byte("{" + key + ":1," + key + ":2}"))
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, "duplicate key of %q", unit)
		quoted := strings.TrimPrefix(syntax.Reason, "duplicate key ")
		assert.LessOrEqual(t, len([]rune(quoted)), 64, "the key of %q is repeated, %s", unit, quoted)
		assert.False(t, strings.ContainsAny(quoted, "\x1b\n"), "the key of %q is repeated unescaped: %q", unit, quoted)
	}
}

func TestCleanReturnsCompactTextAsItIs(t *testing.T) {
	src := []byte("\n" + `{"a":[1,2]}` + "\n")
	got, err := Clean(src)
	require.NoError(t, err)
	assert.Same(t, &src[1], &got[0], "a compact text was copied, want a slice of it")
	assert.Equal(t, len(got), cap(got), "the value has room")
}

// tooLong is far above what linear time needs, also with the race detector, and far below what quadratic time needs.
const tooLong = 20 * time.Second

// TestCleanIsLinear runs inputs made to be slow.
func TestCleanIsLinear(t *testing.T) {
	const manyKeys = 400_000
	var distinct, escaped, wide strings.Builder
	for i := range manyKeys {
		n := mustMarshal(t, i)
		distinct.WriteString(`"k` + n + `":1,`)
		escaped.WriteString(`"\u006b` + n + `":1,`)
	}
	for range 5_000 {
		wide.WriteByte('{')
		for i := range fewKeys + 1 {
			wide.WriteString(`"` + mustMarshal(t, i) + `":1,`)
		}
		wide.WriteString(`"z":1},`)
	}
	sameMark := func(n int) string { // the marks of all these keys are the same
		var b strings.Builder
		for i := range n {
			b.WriteString(`"abcdefgh` + strings.Repeat("0", 8-len(mustMarshal(t, i))) + mustMarshal(t, i) + `abcdefgh":1,`)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, src string
		valid     bool
	}{
		{"a million open arrays", strings.Repeat("[", 1<<20), false},
		{"a million open objects", strings.Repeat(`{"a":`, 200_000), false},
		{"many distinct keys", "{" + distinct.String() + `"z":1}`, true},
		{"many distinct keys and one twice", "{" + distinct.String() + `"k99999":1}`, false},
		{"many keys with escapes", "{" + escaped.String() + `"z":1}`, true},
		{"one of many keys twice, once escaped", "{" + distinct.String() + `"\u006b7":1}`, false},
		{"many objects with many keys", "[" + wide.String() + "0]", true},
		{"keys made to look alike", "{" + sameMark(manyKeys) + `"z":1}`, true},
		{"a long number", strings.Repeat("9", 1<<20), true},
		{"a long string of escapes", `"` + strings.Repeat(`\u00e9`, 1<<17) + `"`, true},
		{"white space only", strings.Repeat(" ", 1<<20), false},
		{"white space between all", "[" + strings.Repeat("1 , ", 1<<18) + "1]", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			watched := cputest.Watch()
			_, err := Clean([]byte(c.src))
			assert.LessOrEqual(t, watched(), tooLong, "Clean took, %d", len(c.src))
			assert.Equal(t, c.valid, err == nil, "Clean: got %v, want valid", err)
		})
	}
}

func TestCleanIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := spacedText().Draw(t, "src")
		once, err := Clean([]byte(src))
		require.NoError(t, err, "Clean(%q)", src)
		twice, err := Clean(once)
		require.True(t, err == nil && bytes.Equal(once, twice), "Clean(%q) = %q, %v, want it unchanged", once, twice, err)
		var compact bytes.Buffer
		err = json.Compact(&compact, []byte(src))
		require.True(t, err == nil && compact.String() == string(once), "Clean(%q) = %q, want %q as encoding/json has it (%v)", src, once, compact.String(), err)
	})
}

// FuzzClean holds Clean against encoding/json: it takes nothing that the standard library refuses, and means the same by it.
func FuzzClean(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2.5e-3,"x\u0000\ud83d\ude00"],"b":null}`, `{"a":1,"\u0061":2}`, ` [ true , false ] `,
		`"\ud800"`, "\"\xff\"", `-0`, `1e400`, `01`, "\xef\xbb\xbf1", `{"a":{"a":{}}}`, `[[[[]]]]`, `"\u00e9é"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		before := bytes.Clone(src)
		got, err := Clean(src)
		require.Equal(t, string(before), string(src), "Clean changed its input")
		if err != nil {
			var syntax *SyntaxError
			require.True(t, errors.As(err, &syntax) && syntax.Offset >= 0 && syntax.Offset <= len(src), "%v %v", src, err)
			return
		}
		want, err := decodeStandard(src)
		require.NoError(t, err, "Clean takes %q, encoding/json refuses", src)
		again, err := decodeStandard(got)
		require.True(t, err == nil && reflect.DeepEqual(again, want), "Clean(%q) = %q (%v), which means something else", src, got, err)
		require.Equal(t, want, got.Any(), "Any of %q", got)
		twice, err := Clean(got)
		require.True(t, err == nil && bytes.Equal(twice, got), "Clean(%q) = %q, %v, want it unchanged", got, twice, err)
	})
}

// FuzzReaders gives the reading functions bytes that are no Value.
func FuzzReaders(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,{"b":"c"}]}`, `{"a`, `{"a"`, `{"a":`, `{"a":}`, `{"a":1`, `{"a":1,}`, `{"a":1,"b"`, `{1:2}`, `{,}`, `{"\`, `[}`, `[,`, `[[[`,
		`"\u12`, `["\u12-4"]`, `"`, `:`, `-`, `1e`, "\x00", "\xff\xff", strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000), strings.Repeat("[,", 1000),
	} {
		f.Add([]byte(s), []byte(`{"a":{"b":null}}`))
		f.Add([]byte(`{"a":{"b":null}}`), []byte(s))
	}
	f.Fuzz(func(_ *testing.T, a, b []byte) {
		v, w := Value(a), Value(b)
		for _, part := range v.Members() {
			part.Any()
		}
		for _, part := range v.Elements() {
			part.Text()
		}
		v.Lookup("a")
		v.Index(3)
		v.Int64()
		v.Float64()
		v.Any()
		Compare(v, w)
		CompareText(v, w)
		Equal(v, w)
		Order(v, w)
		Order(v, Value(string(a)+"x"))
		AppendOrdered(nil, v)
		AppendOrderedPrefix(nil, v, 3)
		Merge(v, w)
		Overlay(v, w)
		_, _ = Set(v, Path{"a", "0"}, w)
		_, _ = From(v)
	})
}

func decodeStandard(src []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data")
	}
	return x, nil
}

func mustMarshal(t testing.TB, x any) string {
	t.Helper()
	b, err := json.Marshal(x)
	require.NoError(t, err)
	return string(b)
}

func mustClean(t testing.TB, src string) Value {
	t.Helper()
	v, err := Clean([]byte(src))
	require.NoError(t, err, "Clean(%q)", src)
	return v
}
