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

func TestClean(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"a scalar is a value", `7`, `7`},
		{"white space around the value goes", " \t\r\n7\n", `7`},
		{"white space inside goes", "{ \"a\" : [ 1 ,\n2 ] , \"b\" : { } }", `{"a":[1,2],"b":{}}`},
		{"white space in empty containers goes", `{"a":[ ],"b":{ }}`, `{"a":[],"b":{}}`},
		{"white space in strings stays", `[ " a  b " ]`, `[" a  b "]`},
		{"keys keep their order", `{"b":1,"a":2}`, `{"b":1,"a":2}`},
		{"numbers keep their spelling", `[1.0,1E+2,-0,9007199254740993,1e400,0.10]`, `[1.0,1E+2,-0,9007199254740993,1e400,0.10]`},
		{"escapes keep their spelling", `["\u0041\/\n\uD83D\uDE00"]`, `["\u0041\/\n\uD83D\uDE00"]`},
		{"an escaped NUL is a character like others", `"\u0000"`, `"\u0000"`},
		{"DEL and line separators need no escape", "\"\x7f\u2028\"", "\"\x7f\u2028\""},
		{"keys that matter elsewhere are plain keys", `{"__proto__":1,"$where":2,"a.b":3,"":4}`, `{"__proto__":1,"$where":2,"a.b":3,"":4}`},
		{"keys may differ in case only", `{"a":1,"A":2}`, `{"a":1,"A":2}`},
		{"the same key may stand in different objects", `{"a":{"a":1},"b":[{"a":1},{"a":1}]}`, `{"a":{"a":1},"b":[{"a":1},{"a":1}]}`},
		{"characters of two, three and four bytes", `"é€😀"`, `"é€😀"`},
		{"an exponent may have leading zeros", `1e-00000000000000000000000007`, `1e-00000000000000000000000007`},
		{"64 levels are allowed", strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 64) + strings.Repeat("]", 64)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Clean([]byte(c.src))
			assert.True(t, err == nil && string(got) == c.want, "Clean(%s) = %s, %v, want %s", c.src, got, err, c.want)
		})
	}
}

func TestCleanRefuses(t *testing.T) {
	for _, c := range []struct {
		name, src string
		offset    int
		reason    string
	}{
		{"nothing", "", 0, "unexpected end"},
		{"only white space", " \n", 2, "unexpected end"},
		{"a byte order mark", "\xef\xbb\xbf{}", 0, "unexpected"},
		{"a second value", `{} {}`, 3, "after the value"},
		{"trailing text", `1x`, 1, "after the value"},
		{"a comment", `{} // x`, 3, "after the value"},
		{"single quotes", `{'a':1}`, 1, "instead of a key"},
		{"a bare key", `{a:1}`, 1, "instead of a key"},
		{"a trailing comma in an object", `{"a":1,}`, 7, "instead of a key"},
		{"a trailing comma in an array", `[1,]`, 3, "instead of a value"},
		{"a missing colon", `{"a" 1}`, 5, "instead of :"},
		{"a missing value", `{"a":}`, 5, "instead of a value"},
		{"a missing comma", `[1 2]`, 3, "instead of , or ]"},
		{"the wrong bracket", `[1}`, 2, "instead of , or ]"},
		{"an open array", `[1`, 2, "unexpected end"},
		{"an open object", `{"a":1`, 6, "unexpected end"},
		{"an open string", `"a`, 2, "unexpected end"},
		{"an open escape", `"a\`, 3, "unexpected end"},
		{"duplicate keys", `{"a":1,"b":2,"a":3}`, 13, `duplicate key "a"`},
		{"duplicate keys that are spelled differently", `{"a":1,"\u0061":2}`, 7, `duplicate key "a"`},
		{"duplicate keys by different surrogate spellings", `{"😀":1,"\ud83d\ude00":2}`, 10, `duplicate key`},
		{"duplicate empty keys", `{"":1,"":2}`, 6, `duplicate key ""`},
		{"duplicate keys deep inside", `[{"a":{"x":1,"x":2}}]`, 13, `duplicate key "x"`},
		{"a high surrogate alone", `"\ud83d"`, 1, "half of a surrogate pair"},
		{"a high surrogate before other text", `"\ud83dx\ude00"`, 1, "half of a surrogate pair"},
		{"a high surrogate before another escape", `"\ud83d\n"`, 1, "half of a surrogate pair"},
		{"two high surrogates", `"\ud83d\ud83d\ude00"`, 1, "half of a surrogate pair"},
		{"a low surrogate first", `"\ude00\ud83d"`, 1, "half of a surrogate pair"},
		{"invalid UTF-8", "\"12345678\xff\"", 9, "invalid UTF-8"},
		{"UTF-8 cut short", "\"\xe2\x82\"", 1, "invalid UTF-8"},
		{"a surrogate in UTF-8", "\"\xed\xa0\x80\"", 1, "invalid UTF-8"},
		{"an overlong form", "\"\xc0\x80\"", 1, "invalid UTF-8"},
		{"invalid UTF-8 in a key", "{\"\xff\":1}", 2, "invalid UTF-8"},
		{"a raw NUL in a string", "\"a\x00\"", 2, "control character 0x00"},
		{"a raw line break in a string", "\"abcdefghi\n\"", 10, "control character 0x0a"},
		{"an unknown escape", `"\x41"`, 1, "unknown escape"},
		{"a short unicode escape", `"\u12"`, 1, "four hexadecimal"},
		{"NaN", `NaN`, 0, "instead of a value"},
		{"Infinity", `-Infinity`, 1, "instead of a digit"},
		{"a capital word", `True`, 0, "instead of a value"},
		{"a word cut short", `tru`, 0, "words of JSON"},
		{"a leading zero", `01`, 0, "begin with 0"},
		{"a leading zero behind the sign", `-01`, 0, "begin with 0"},
		{"a plus sign", `+1`, 0, "instead of a value"},
		{"a number without integer part", `.5`, 0, "instead of a value"},
		{"a number without fraction", `1.`, 2, "unexpected end"},
		{"a number without exponent", `[1e]`, 3, "instead of a digit in an exponent"},
		{"only a sign", `-`, 1, "unexpected end"},
		{"hexadecimal", `0x10`, 1, "after the value"},
		{"an exponent beyond every use", `1e100000000000000000`, 0, "exponent is too large"},
		{"65 arrays in each other", strings.Repeat("[", 65) + strings.Repeat("]", 65), 64, "nested deeper than 64"},
		{"65 objects in each other", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), 320, "nested deeper than 64"},
		{"other white space", "[1,\v2]", 3, "instead of a value"},
		{"a no-break space", "[1,\u00a02]", 3, "instead of a value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Clean([]byte(c.src))
			var syntax *SyntaxError
			require.True(t, errors.As(err, &syntax) && errors.Is(err, ErrSyntax), "Clean(%.80q) = %.80q, %v, want a *SyntaxError", c.src, got, err)
			assert.True(t, syntax.Offset == c.offset && strings.Contains(syntax.Reason, c.reason),
				"Clean(%.80q) fails at %d: %q, want at %d: %q", c.src, syntax.Offset, syntax.Reason, c.offset, c.reason)
			assert.Nil(t, got, "Clean(%.80q) returns", c.src)
		})
	}
}

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

func TestQuote(t *testing.T) {
	for _, c := range []struct{ s, want string }{
		{"", `""`},
		{"Prüfung", `"Prüfung"`},
		{"a\"b\\\x1b[31m\n", `"a\"b\\\x1b[31m\n"`},
		{"right\u202eleft", `"right\u202eleft"`},
		{"\xff", `"\xff"`},
		{strings.Repeat("x", 62), `"` + strings.Repeat("x", 62) + `"`},
		{strings.Repeat("x", 63), `"` + strings.Repeat("x", 59) + `..."`},
		{strings.Repeat("é", 62), `"` + strings.Repeat("é", 62) + `"`},
		{strings.Repeat("\x00", 1000), `"` + strings.Repeat(`\x00`, 14) + `..."`},
		{strings.Repeat("\\", 1000), `"` + strings.Repeat(`\\`, 29) + `..."`},
	} {
		assert.Equal(t, c.want, Quote(c.s), "Quote(%.20q)", c.s)
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"aüb", 2, "a…"},
		{"aüb", 3, "aü…"},
		{"ü", 1, "…"},
		{"\x80\x80\x80", 2, "…"}, // no character begins
	} {
		assert.Equal(t, c.want, Clip(c.s, c.most), "Clip(%q, %d)", c.s, c.most)
	}
}

func TestCleanReturnsCompactTextAsItIs(t *testing.T) {
	src := []byte("\n" + `{"a":[1,2]}` + "\n")
	got, err := Clean(src)
	require.NoError(t, err)
	assert.Same(t, &src[1], &got[0], "a compact text was copied, want a slice of it")
	assert.Equal(t, len(got), cap(got), "the value has room")
}

// tooLong is far above what linear time needs, also with the race detector, and far
// below what quadratic time needs.
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

// FuzzClean holds Clean against encoding/json: it takes nothing that the
// standard library refuses, and means the same by it.
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

// mustClean is for literals in tests.
func mustClean(t testing.TB, src string) Value {
	t.Helper()
	v, err := Clean([]byte(src))
	require.NoError(t, err, "Clean(%q)", src)
	return v
}
