package schema

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

func TestASchemaOfItsOwn(t *testing.T) {
	load := func(name string) ([]byte, error) {
		if name != "days.json" {
			return nil, errors.New("file is not there")
		}
		return []byte(`{"type": "integer", "minimum": 1}`), nil
	}
	text := data.Value(`{"type":"object","properties":{"days":{"$ref":"days.json"}}}`)
	s, err := Compile(text, load)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(s.Text()), "text")
	assert.NoError(t, s.Check(data.Value(`{"days":1}`)), "what fits")
	err = s.Check(data.Value(`{"days":0}`))
	assert.True(t, errors.Is(err, ErrInvalidData) && strings.Contains(err.Error(), "/days"), "what does not fit: got %v, want ErrInvalidData with the place", err)
	for _, doc := range []string{`{"$ref":"other.json"}`, `{"$ref":"https://example.org/s.json"}`, `{"type":"obj"}`} {
		_, err := Compile(data.Value(doc), load)
		assert.Error(t, err, "%s: got a schema", doc)
	}
	_, err = Compile(text, nil)
	assert.Error(t, err, "without other files: got a schema that refers to one")
	var none *Schema
	assert.True(t, none.Check(data.Value("1")) == nil && none.Text().Kind() == data.Absent, "no schema: got one that refuses or has a text")
}
