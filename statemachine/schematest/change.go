package schematest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

// value is a JSON value that can be changed. Its members keep their order.
type value struct {
	kind   data.Kind
	scalar data.Value // of what is neither an object nor an array
	keys   []string   // of an object, beside the values
	values []*value   // of an object or an array
}

func valueOf(v data.Value) *value {
	out := &value{kind: v.Kind(), scalar: v}
	switch out.kind {
	case data.Object:
		for key, member := range v.Members() {
			out.keys, out.values = append(out.keys, key), append(out.values, valueOf(member))
		}
	case data.Array:
		for _, element := range v.Elements() {
			out.values = append(out.values, valueOf(element))
		}
	}
	return out
}

func (v *value) text(dst []byte) []byte {
	if v.kind != data.Object && v.kind != data.Array {
		return append(dst, v.scalar...)
	}
	open, shut := byte('['), byte(']')
	if v.kind == data.Object {
		open, shut = '{', '}'
	}
	dst = append(dst, open)
	for i, part := range v.values {
		if i > 0 {
			dst = append(dst, ',')
		}
		if v.kind == data.Object {
			dst = append(data.AppendString(dst, v.keys[i]), ':')
		}
		dst = part.text(dst)
	}
	return append(dst, shut)
}

func (v *value) walk(visit func(*value)) {
	visit(v)
	for _, part := range v.values {
		part.walk(visit)
	}
}

func (v *value) copy() *value {
	out := *v
	out.keys, out.values = slices.Clone(v.keys), make([]*value, len(v.values))
	for i, part := range v.values {
		out.values[i] = part.copy()
	}
	return &out
}

// small are values that stand in place of others.
var small = []data.Value{
	data.Value(`null`), data.Value(`true`), data.Value(`false`), data.Value(`0`), data.Value(`1`), data.Value(`-1`), data.Value(`1.5`), data.Value(`250`),
	data.Value(`""`), data.Value(`"x"`), data.Value(`"a b"`), data.Value(`"1"`), data.Value(`"true"`), data.Value(`"P1D"`), data.Value(`"1h30m"`),
	data.Value(`"${1}"`), data.Value(`"*"`), data.Value(`"svcPublic.x"`), data.Value(`"https://example.org"`), data.Value(`"a@example.org"`),
	data.Value(`[]`), data.Value(`{}`), data.Value(`["x"]`), data.Value(`[null]`), data.Value(`{"x":1}`), data.Value(`[{}]`),
}

func (f *Format) changed(t testing.TB, files []string) *rapid.Generator[data.Value] {
	t.Helper()
	if len(files) == 0 {
		t.Fatal("no files")
	}
	words := []string{"x", "a b", "1", "250", "P1D", "*", "x.*", ""}
	words = append(words, allKeys(t, f.text)...)
	var from []*value
	for _, text := range files {
		from = append(from, valueOf(Data(t, text)))
	}
	return rapid.Custom(func(t *rapid.T) data.Value {
		file := rapid.SampledFrom(from).Draw(t, "from").copy()
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			change(t, file, words)
		}
		return file.text(nil)
	})
}

func change(t *rapid.T, file *value, words []string) {
	var all, groups []*value
	file.walk(func(v *value) {
		all = append(all, v)
		if v.kind == data.Object || v.kind == data.Array {
			groups = append(groups, v)
		}
	})
	other := func() *value { // a small one, or one of the file's own
		if rapid.Bool().Draw(t, "own") {
			return rapid.SampledFrom(all).Draw(t, "other").copy()
		}
		return valueOf(rapid.SampledFrom(small).Draw(t, "small"))
	}
	if len(groups) == 0 {
		*file = *other()
		return
	}
	at := rapid.SampledFrom(groups).Draw(t, "at")
	kind := rapid.SampledFrom([]string{"drop", "rename", "replace", "wrap", "add"}).Draw(t, "change")
	if len(at.values) == 0 {
		kind = "add"
	}
	i := 0
	if kind != "add" {
		i = rapid.IntRange(0, len(at.values)-1).Draw(t, "which")
	}
	switch kind {
	case "drop":
		at.values = slices.Delete(at.values, i, i+1)
		if at.kind == data.Object {
			at.keys = slices.Delete(at.keys, i, i+1)
		}
	case "rename":
		if at.kind == data.Object {
			at.rename(i, rapid.SampledFrom(words).Draw(t, "word"))
		}
	case "replace":
		at.values[i] = other()
	case "wrap":
		at.values[i] = &value{kind: data.Array, values: []*value{at.values[i]}}
	case "add":
		at.add(rapid.SampledFrom(words).Draw(t, "word"), other())
	}
}

func (v *value) rename(i int, key string) {
	if !slices.Contains(v.keys, key) {
		v.keys[i] = key
	}
}

func (v *value) add(key string, part *value) {
	if v.kind == data.Object {
		if slices.Contains(v.keys, key) {
			return
		}
		v.keys = append(v.keys, key)
	}
	v.values = append(v.values, part)
}
