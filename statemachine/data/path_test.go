package data

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParsePath(t *testing.T) {
	got, err := ParsePath("svcPublic.items.0.price")
	want := (Path{"svcPublic", "items", "0", "price"})
	assert.True(t, err == nil && reflect.DeepEqual(got, want), "ParsePath = %q, %v, want %q", got, err, want)
	assert.Equal(t, "svcPublic.items.0.price", got.String(), "the path reads")
	_, err = ParsePath(strings.Repeat("a.", 31) + "a")
	assert.NoError(t, err, "ParsePath of 32 segments")
	for _, c := range []struct{ name, s string }{
		{"nothing", ""},
		{"only a dot", "."},
		{"a leading dot", ".a"},
		{"a trailing dot", "a."},
		{"two dots", "a..b"},
		{"33 segments", strings.Repeat("a.", 32) + "a"},
		{"a thousand segments", strings.Repeat("a.", 999) + "a"},
		{"invalid UTF-8", "a.\xff"},
	} {
		p, err := ParsePath(c.s)
		assert.ErrorIs(t, err, ErrPath, "%s: ParsePath(%.20q) = %q", c.name, c.s, p)
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct {
		name, target, path, value, want string
		err                             error
	}{
		{"a member is replaced in its place", `{"a":1,"b":2}`, "a", `[3]`, `{"a":[3],"b":2}`, nil},
		{"a new member goes to the end", `{"a":1}`, "b", `2`, `{"a":1,"b":2}`, nil},
		{"a new member of an empty object", `{}`, "b", `2`, `{"b":2}`, nil},
		{"missing objects are made", `{"x":0}`, "a.b.c", `1`, `{"x":0,"a":{"b":{"c":1}}}`, nil},
		{"a nested member is replaced", `{"a":{"b":[1,2],"c":3},"d":4}`, "a.b", `null`, `{"a":{"b":null,"c":3},"d":4}`, nil},
		{"a nested member is added", `{"a":{"b":1},"d":4}`, "a.c", `2`, `{"a":{"b":1,"c":2},"d":4}`, nil},
		{"an element is replaced", `{"a":[1,2,3]}`, "a.1", `"x"`, `{"a":[1,"x",3]}`, nil},
		{"the length appends", `{"a":[1]}`, "a.1", `2`, `{"a":[1,2]}`, nil},
		{"the length appends to an empty array", `{"a":[]}`, "a.0", `2`, `{"a":[2]}`, nil},
		{"an object is made in an array", `{"a":[]}`, "a.0.b.c", `2`, `{"a":[{"b":{"c":2}}]}`, nil},
		{"a member of an element", `{"a":[{"b":1},{"b":2}]}`, "a.1.b", `3`, `{"a":[{"b":1},{"b":3}]}`, nil},
		{"in an object digits are a key", `{}`, "0", `1`, `{"0":1}`, nil},
		{"a missing thing becomes an object, not an array", `{}`, "a.0", `1`, `{"a":{"0":1}}`, nil},
		{"a key meets however it is spelled", `{"\u0061":1}`, "a", `2`, `{"\u0061":2}`, nil},
		{"a key that needs escapes", `{}`, `a"b`, `1`, `{"a\"b":1}`, nil},
		{"an absent target is an empty object", ``, "a.b", `1`, `{"a":{"b":1}}`, nil},
		{"an absent value is null", `{}`, "a", ``, `{"a":null}`, nil},
		{"an array at the top", `[1]`, "1", `2`, `[1,2]`, nil},
		{"a number on the way", `{"a":1}`, "a.b", `1`, ``, ErrPath},
		{"a string on the way", `{"a":{"b":"x"}}`, "a.b.c", `1`, ``, ErrPath},
		{"null on the way", `{"a":null}`, "a.b", `1`, ``, ErrPath},
		{"a scalar at the top", `7`, "a", `1`, ``, ErrPath},
		{"a key in an array", `{"a":[]}`, "a.b", `1`, ``, ErrPath},
		{"a position behind the end", `{"a":[1]}`, "a.2", `1`, ``, ErrPath},
		{"a huge position", `{"a":[1]}`, "a.99999999999999999999", `1`, ``, ErrPath},
		{"a negative position", `{"a":[1]}`, "a.-1", `1`, ``, ErrPath},
		{"a position with a leading zero", `{"a":[1,2]}`, "a.01", `1`, ``, ErrPath},
		{"a result too deep", `{}`, "a.b", strings.Repeat("[", 63) + strings.Repeat("]", 63), ``, ErrDepth},
	} {
		path, err := ParsePath(c.path)
		require.NoError(t, err)
		target := Value(c.target)
		got, err := Set(target, path, Value(c.value))
		assert.True(t, errors.Is(err, c.err) && string(got) == c.want, "%v %v %v %v %v %v %v %v", c.name, c.target, c.path, c.value, got, err, c.want, c.err)
		assert.Equal(t, c.target, target.String(), "%s: the target", c.name)
	}
	got, err := Set(Value(`{"a":1}`), nil, Value("2"))
	assert.True(t, err == nil && string(got) == "2", "Set with an empty path = %s, %v, want 2", got, err)
}

func TestSetAgreesWithTheObviousOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target, v := value(3).Draw(t, "target"), value(1).Draw(t, "value")
		segment := rapid.SampledFrom([]string{"a", "b", "c", "0", "1", "2", "é"})
		path := Path(rapid.SliceOfN(segment, 0, 4).Draw(t, "path"))
		checkSet(t, target, path, v)
	})
}

// FuzzSet holds Set against maps.
func FuzzSet(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":1}]}`), "a.0.b", []byte(`2`))
	f.Add([]byte(`{"\u0061":{}}`), "a.b.c", []byte(`{}`))
	f.Fuzz(func(t *testing.T, a []byte, p string, b []byte) {
		target, err := Clean(a)
		if err != nil {
			t.Skip()
		}
		path, err := ParsePath(p)
		if err != nil {
			t.Skip()
		}
		v, err := Clean(b)
		if err != nil {
			t.Skip()
		}
		checkSet(t, target, path, v)
	})
}

func checkSet(t rapid.TB, target Value, path Path, v Value) {
	before := target.String()
	got, err := Set(target, path, v)
	require.Equal(t, before, target.String(), "the target was changed")
	if errors.Is(err, ErrDepth) {
		return
	}
	want, ok := setAny(target.Any(), path, v.Any())
	require.Equal(t, err == nil, ok, "Set(%s, %q, %s): %v, want success", target, path, v, err)
	if err != nil {
		return
	}
	clean, err := Clean(got)
	require.True(t, err == nil && string(clean) == string(got), "Set(%s, %q, %s) = %s, which is not clean: %v", target, path, v, got, err)
	require.Equal(t, want, got.Any(), "Set(%s, %q, %s)", target, path, v)
}

func setAny(target any, path Path, v any) (any, bool) {
	if len(path) == 0 {
		return v, true
	}
	switch x := target.(type) {
	case map[string]any:
		below, ok := x[path[0]]
		if !ok {
			below = map[string]any{}
		}
		below, ok = setAny(below, path[1:], v)
		x[path[0]] = below
		return x, ok
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(x) || strconv.Itoa(i) != path[0] {
			return nil, false
		}
		if i == len(x) {
			x = append(x, map[string]any{})
		}
		below, ok := setAny(x[i], path[1:], v)
		x[i] = below
		return x, ok
	}
	return nil, false
}
