package data_test

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

func TestParsePath(t *testing.T) {
	got, err := data.ParsePath("svcPublic.items.0.price")
	want := (data.Path{"svcPublic", "items", "0", "price"})
	assert.True(t, err == nil && reflect.DeepEqual(got, want), "ParsePath = %q, %v, want %q", got, err, want)
	assert.Equal(t, "svcPublic.items.0.price", got.String(), "the path reads")
	_, err = data.ParsePath(strings.Repeat("a.", 31) + "a")
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
		p, err := data.ParsePath(c.s)
		assert.ErrorIs(t, err, data.ErrPath, "%s: ParsePath(%.20q) = %q", c.name, c.s, p)
	}
}

func TestSetAgreesWithTheObviousOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target, v := value(3).Draw(t, "target"), value(1).Draw(t, "value")
		segment := rapid.SampledFrom([]string{"a", "b", "c", "0", "1", "2", "é"})
		path := data.Path(rapid.SliceOfN(segment, 0, 4).Draw(t, "path"))
		checkSet(t, target, path, v)
	})
}

// FuzzSet holds Set against maps.
func FuzzSet(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":1}]}`), "a.0.b", []byte(`2`))
	f.Add([]byte(`{"\u0061":{}}`), "a.b.c", []byte(`{}`))
	f.Fuzz(func(t *testing.T, a []byte, p string, b []byte) {
		target, err := data.Clean(a)
		if err != nil {
			t.Skip()
		}
		path, err := data.ParsePath(p)
		if err != nil {
			t.Skip()
		}
		v, err := data.Clean(b)
		if err != nil {
			t.Skip()
		}
		checkSet(t, target, path, v)
	})
}

func checkSet(t rapid.TB, target data.Value, path data.Path, v data.Value) {
	before := target.String()
	got, err := data.Set(target, path, v)
	require.Equal(t, before, target.String(), "the target was changed")
	if errors.Is(err, data.ErrDepth) {
		return
	}
	want, ok := setAny(target.Any(), path, v.Any())
	require.Equal(t, err == nil, ok, "Set(%s, %q, %s): %v, want success", target, path, v, err)
	if err != nil {
		return
	}
	clean, err := data.Clean(got)
	require.True(t, err == nil && string(clean) == string(got), "Set(%s, %q, %s) = %s, which is not clean: %v", target, path, v, got, err)
	require.Equal(t, want, got.Any(), "Set(%s, %q, %s)", target, path, v)
}

func setAny(target any, path data.Path, v any) (any, bool) {
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
