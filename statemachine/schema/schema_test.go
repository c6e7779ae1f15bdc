package schema

import (
	"errors"
	"strings"
	"testing"

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
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.Text()); got != string(text) {
		t.Errorf("text: got %s", got)
	}
	if err := s.Check(data.Value(`{"days":1}`)); err != nil {
		t.Errorf("what fits: got %v", err)
	}
	err = s.Check(data.Value(`{"days":0}`))
	if !errors.Is(err, ErrInvalidData) || !strings.Contains(err.Error(), "/days") {
		t.Errorf("what does not fit: got %v, want ErrInvalidData with the place", err)
	}
	for _, doc := range []string{`{"$ref":"other.json"}`, `{"$ref":"https://example.org/s.json"}`, `{"type":"obj"}`} {
		if _, err := Compile(data.Value(doc), load); err == nil {
			t.Errorf("%s: got a schema", doc)
		}
	}
	if _, err := Compile(text, nil); err == nil {
		t.Error("without other files: got a schema that refers to one")
	}
	var none *Schema
	if none.Check(data.Value("1")) != nil || none.Text().Kind() != data.Absent {
		t.Error("no schema: got one that refuses or has a text")
	}
}

// TestAChoiceByConstNamesAllChoices, as enum does.
func TestAChoiceByConstNamesAllChoices(t *testing.T) {
	for text, want := range map[string]string{
		`{"properties":{"size":{"enum":["s","l"]}}}`:                                              "at /size: value must be one of 's', 'l'",
		`{"properties":{"size":{"oneOf":[{"const":"s","title":"Small"},{"const":"l"}]}}}`:         "at /size: value must be one of 's', 'l'",
		`{"properties":{"size":{"type":"string","anyOf":[{"const":"s"},{"const":"l"}]}}}`:         "at /size: value must be one of 's', 'l'",
		`{"properties":{"size":{"oneOf":[{"const":"s"}]}}}`:                                       "at /size: value must be 's'",
		`{"properties":{"size":{"oneOf":[{"type":"integer"},{"const":"l"}]}}}`:                    "at /size: got string, want integer",
		`{"oneOf":[{"properties":{"size":{"const":"s"}}},{"properties":{"size":{"const":"l"}}}]}`: "at /size: value must be 's'",
	} {
		s, err := Compile(data.Value(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(data.Value(`{"size":"q"}`)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
