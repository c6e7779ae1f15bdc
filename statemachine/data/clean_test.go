package data_test

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

	_ "troupe/internal/fixedseed"
	"troupe/statemachine/data"
)

func TestCleanRepeatsLittleOfTheInput(t *testing.T) {
	for _, unit := range []string{"x", "\x1b", "\"", "é", "\U0010ffff", `\\`} {
		key := mustMarshal(t, strings.Repeat(unit, 1000))
		_, err := data.Clean([]byte("{" + key + ":1," + key + ":2}"))
		var syntax *data.SyntaxError
		require.ErrorAs(t, err, &syntax, "duplicate key of %q", unit)
		quoted := strings.TrimPrefix(syntax.Reason, "duplicate key ")
		assert.LessOrEqual(t, len([]rune(quoted)), 64, "the key of %q is repeated, %s", unit, quoted)
		assert.False(t, strings.ContainsAny(quoted, "\x1b\n"), "the key of %q is repeated unescaped: %q", unit, quoted)
	}
}

func TestCleanReturnsCompactTextAsItIs(t *testing.T) {
	src := []byte("\n" + `{"a":[1,2]}` + "\n")
	got, err := data.Clean(src)
	require.NoError(t, err)
	assert.Same(t, &src[1], &got[0], "a compact text was copied, want a slice of it")
	assert.Equal(t, len(got), cap(got), "the value has room")
}

// tooLong is far above what linear time needs, also with the race detector, and far below what quadratic time needs.
const tooLong = 20 * time.Second

func TestCleanIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := spacedText().Draw(t, "src")
		once, err := data.Clean([]byte(src))
		require.NoError(t, err, "Clean(%q)", src)
		twice, err := data.Clean(once)
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
		got, err := data.Clean(src)
		require.Equal(t, string(before), string(src), "Clean changed its input")
		if err != nil {
			var syntax *data.SyntaxError
			require.True(t, errors.As(err, &syntax) && syntax.Offset >= 0 && syntax.Offset <= len(src), "%v %v", src, err)
			return
		}
		want, err := decodeStandard(src)
		require.NoError(t, err, "Clean takes %q, encoding/json refuses", src)
		again, err := decodeStandard(got)
		require.True(t, err == nil && reflect.DeepEqual(again, want), "Clean(%q) = %q (%v), which means something else", src, got, err)
		require.Equal(t, want, got.Any(), "Any of %q", got)
		twice, err := data.Clean(got)
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
		v, w := data.Value(a), data.Value(b)
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
		data.Compare(v, w)
		data.CompareText(v, w)
		data.Equal(v, w)
		data.Order(v, w)
		data.Order(v, data.Value(string(a)+"x"))
		data.AppendOrdered(nil, v)
		data.AppendOrderedPrefix(nil, v, 3)
		data.Merge(v, w)
		data.Overlay(v, w)
		_, _ = data.Set(v, data.Path{"a", "0"}, w)
		_, _ = data.From(v)
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

func mustClean(t testing.TB, src string) data.Value {
	t.Helper()
	v, err := data.Clean([]byte(src))
	require.NoError(t, err, "Clean(%q)", src)
	return v
}
