package schematest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

func decode(t testing.TB, schema string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(schema), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// HasKeys compares the keys of the schema with those of the reader, both ways. tables has the
// reader's by the place in the schema, such as "$defs/node"; "" is the top.
func HasKeys(t *testing.T, schema string, tables map[string][]string) {
	t.Helper()
	places := map[string][]string{}
	walk(decode(t, schema), "", func(path string, at map[string]any) {
		if at["additionalProperties"] == false {
			properties, _ := at["properties"].(map[string]any)
			places[path] = slices.Sorted(maps.Keys(properties))
		}
	})
	for path, keys := range tables {
		if got, want := places[path], slices.Sorted(slices.Values(keys)); !slices.Equal(got, want) {
			t.Errorf("%q: the schema has\n%q, the reader knows\n%q", path, got, want)
		}
	}
	for path := range places {
		if tables[path] == nil {
			t.Errorf("%q: nothing says which keys the reader knows", path)
		}
	}
}

// HasWords compares the words that the schema takes at a place with those of the reader.
func HasWords(t *testing.T, schema, path string, words []string) {
	t.Helper()
	at := decode(t, schema)
	for name := range strings.SplitSeq(path, "/") {
		at, _ = at[name].(map[string]any)
	}
	var got []string
	list, _ := at["enum"].([]any)
	for _, word := range list {
		text, _ := word.(string)
		got = append(got, text)
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(words)); !slices.Equal(got, want) {
		t.Errorf("%s: the schema has %q, the reader knows %q", path, got, want)
	}
}

// walk calls visit with a schema and all inside it. path is where the schema stands.
func walk(schema any, path string, visit func(path string, at map[string]any)) {
	at, ok := schema.(map[string]any)
	if !ok {
		return
	}
	visit(path, at)
	below := func(name string) string { return strings.TrimPrefix(path+"/"+name, "/") }
	for _, keyword := range []string{"properties", "$defs"} {
		named, _ := at[keyword].(map[string]any)
		for name, inner := range named {
			walk(inner, below(keyword+"/"+name), visit)
		}
	}
	for _, keyword := range []string{"additionalProperties", "propertyNames", "items"} {
		walk(at[keyword], below(keyword), visit)
	}
	// NB: what stands in allOf, if, then and else narrows keys that are described beside it.
}

func eachKey(t testing.TB, schema string, visit func(key string, about map[string]any)) {
	t.Helper()
	walk(decode(t, schema), "", func(path string, at map[string]any) {
		properties, _ := at["properties"].(map[string]any)
		for key, inner := range properties {
			if about, ok := inner.(map[string]any); ok { // false narrows as well
				visit(key, about)
			}
		}
	})
}

func allKeys(t testing.TB, schema string) []string {
	t.Helper()
	var keys []string
	eachKey(t, schema, func(key string, _ map[string]any) { keys = append(keys, key) })
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Describes fails when the schema has no title or id, or does not mention a key.
func Describes(t *testing.T, schema string) {
	t.Helper()
	top := decode(t, schema)
	for _, key := range []string{"title", "description", "$id"} {
		if text, _ := top[key].(string); text == "" {
			t.Errorf("the schema has no %s", key)
		}
	}
	eachKey(t, schema, func(key string, about map[string]any) {
		if text, _ := about["description"].(string); !strings.HasSuffix(text, ".") {
			t.Errorf("the key %q has the description %q, want a sentence", key, text)
		}
	})
}
