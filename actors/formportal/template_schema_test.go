package formportal

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

// TestABundleSaysWhatItsFilesSay compares with the compiler's own way through
// the files, which is the oracle here.
func TestABundleSaysWhatItsFilesSay(t *testing.T) {
	files := map[string]string{
		"a.json":      `{"type":"object","properties":{"b":{"$ref":"sub/b.json"},"self":{"$ref":"#"},"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`,
		"sub/b.json":  `{"anyOf":[{"$ref":"c.json"},{"$ref":"../a.json#/$defs/n"},{"const":{"$ref":"c.json"}}]}`,
		"sub/c.json":  `{"$anchor":"word","type":"string","maxLength":2}`,
		"yes.json":    `true`,
		"a %b~c.json": `{"type":"null"}`,
	}
	read := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("file is not there")
	}
	// NB: the compiler asks for names as they stand in the reference.
	oracleRead := func(name string) ([]byte, error) {
		if name == "a%20%25b~c.json" {
			name = "a %b~c.json"
		}
		return read(name)
	}
	values := []string{
		`{}`, `1`, `null`, `"ab"`, `"abc"`, `{"v":null}`, `{"v":1}`, `{"v":1.5}`, `{"v":"ab"}`, `{"v":"abc"}`, `{"v":{"b":"ab"}}`, `{"v":{"b":"abc"}}`,
		`{"v":{"b":7}}`, `{"v":{"b":7.5}}`, `{"v":{"b":{"$ref":"c.json"}}}`, `{"v":{"b":{"$ref":"#/$defs/sub~1c.json"}}}`,
		`{"v":{"self":{"self":{"n":1}}}}`, `{"v":{"self":{"self":{"n":"1"}}}}`, `{"w":1}`, `{"default":"ab"}`, `{"default":"abc"}`,
	}
	for _, doc := range []string{
		`{"type":"object","properties":{"v":{"$ref":"a.json"}}}`,
		`{"type":"object","properties":{"v":{"$ref":"a.json#/properties/b"}},"$defs":{"mine":{"type":"string"}}}`,
		`{"type":"object","properties":{"v":{"$ref":"sub/c.json#word"}}}`,
		`{"type":"object","properties":{"v":{"$ref":"./sub/../sub/c.json#"}}}`,
		`{"type":"object","properties":{"v":{"$ref":"yes.json"}},"additionalProperties":false}`,
		`{"type":"object","properties":{"v":{"$ref":"a%20%25b~c.json"}}}`,
		`{"type":"object","properties":{"default":{"$ref":"sub/c.json"},"v":{"enum":[null,{"$ref":"a.json"}]}}}`,
		`{"type":"object","allOf":[{"properties":{"v":{"$ref":"a.json"}}},{"$ref":"#/$defs/few"}],"$defs":{"few":{"maxProperties":1,"not":{"required":["w"]}}}}`,
		`{"$id":"https://example.org/form","type":"object","properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`,
	} {
		oracle, err := schema.Compile(data.Value(doc), oracleRead)
		require.NoError(t, err, doc)
		bundled, err := bundle(data.Value(doc), read)
		if !assert.NoError(t, err, doc) {
			continue
		}
		alone, err := schema.Compile(bundled, nil)
		if !assert.NoError(t, err, "%s: got %s, which is no schema", doc, bundled) {
			continue
		}
		for _, v := range values {
			got, want := alone.Check(data.Value(v)), oracle.Check(data.Value(v))
			assert.Equal(t, want == nil, got == nil, "%s\nof %s\nsays %v\nwant %v", bundled, v, got, want)
		}
	}
}

// TestABundleThatCannotBeIsRefused has what would mean something else in one
// document.
func TestABundleThatCannotBeIsRefused(t *testing.T) {
	read := func(name string) ([]byte, error) { return []byte(`{"$anchor":"x","type":"string"}`), nil }
	for name, doc := range map[string]string{
		"a definition with the name of a file": `{"type":"object","$defs":{"a.json":true},"properties":{"v":{"$ref":"a.json"}}}`,
		"two anchors of one name":              `{"type":"object","properties":{"v":{"$ref":"a.json#x"},"w":{"$ref":"b.json#x"}}}`,
		"definitions that are none":            `{"type":"object","$defs":[],"properties":{"v":{"$ref":"a.json"}}}`,
	} {
		bundled, err := bundle(data.Value(doc), read)
		if err == nil {
			_, err = schema.Compile(bundled, nil)
		}
		assert.Error(t, err, "%s: got %s", name, bundled)
	}
}
