package schematest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// decode returns a schema as Go values.
func decode(t testing.TB, schema string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(schema), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// place returns the subschema that the names lead to, such as "$defs", "node".
func place(t testing.TB, schema string, path []string) map[string]any {
	t.Helper()
	at := decode(t, schema)
	for _, name := range path {
		below, ok := at[name].(map[string]any)
		if !ok {
			t.Fatalf("the schema has nothing at %s", strings.Join(path, "/"))
		}
		at = below
	}
	return at
}

// Keys returns the keys that a mapping has by the subschema that path leads to, in alphabetical
// order. It fails when the subschema takes others as well.
func Keys(t testing.TB, schema string, path ...string) []string {
	t.Helper()
	at := place(t, schema, path)
	if more, said := at["additionalProperties"]; !said || more != false {
		t.Errorf("the schema takes unknown keys at %s", strings.Join(path, "/"))
	}
	properties, _ := at["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// Words returns the words that the subschema takes, in alphabetical order.
func Words(t testing.TB, schema string, path ...string) []string {
	t.Helper()
	var words []string
	list, _ := place(t, schema, path)["enum"].([]any)
	for _, word := range list {
		text, _ := word.(string)
		words = append(words, text)
	}
	slices.Sort(words)
	return words
}

// Closed returns the places of all mappings with keys of their own in the schema, as Keys takes them.
func Closed(t testing.TB, schema string) []string {
	t.Helper()
	var places []string
	walk(decode(t, schema), "", func(path string, at map[string]any) {
		if at["additionalProperties"] == false {
			places = append(places, path)
		}
	})
	slices.Sort(places)
	return places
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
	for _, keyword := range []string{"additionalProperties", "propertyNames", "items", "if", "then", "else"} {
		walk(at[keyword], below(keyword), visit)
	}
	list, _ := at["allOf"].([]any)
	for i, inner := range list {
		walk(inner, below(fmt.Sprintf("allOf/%d", i)), visit)
	}
}

// eachKey calls visit with each key that the schema has for mappings, and its subschema.
func eachKey(schema any, visit func(key string, schema any)) {
	walk(schema, "", func(_ string, at map[string]any) {
		properties, _ := at["properties"].(map[string]any)
		for key, inner := range properties {
			visit(key, inner)
		}
	})
}

// allKeys are all keys of the schema, in alphabetical order, each once.
func allKeys(t testing.TB, schema string) []string {
	t.Helper()
	var keys []string
	eachKey(decode(t, schema), func(key string, _ any) { keys = append(keys, key) })
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Describes fails when the schema has no title, says nothing about a key, or says it in no
// sentence.
func Describes(t *testing.T, schema string) {
	t.Helper()
	top := decode(t, schema)
	for _, key := range []string{"title", "description", "$id"} {
		if text, _ := top[key].(string); text == "" {
			t.Errorf("the schema has no %s", key)
		}
	}
	eachKey(top, func(key string, schema any) {
		about, ok := schema.(map[string]any)
		if _, refines := about["enum"]; !ok || refines && about["type"] == nil || about["const"] != nil {
			return // it narrows a key that is described elsewhere
		}
		if text, _ := about["description"].(string); !strings.HasSuffix(text, ".") {
			t.Errorf("the key %q has the description %q, want a sentence", key, text)
		}
	})
}
