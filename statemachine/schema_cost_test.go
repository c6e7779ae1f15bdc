package statemachine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/schema"
)

// unfolding is a schema of 2 KB that the library visits 2^25 times, whatever the value.
func unfolding() string {
	var b strings.Builder
	b.WriteString(`{$ref: '#/$defs/l0', $defs: {`)
	for i := range 25 {
		fmt.Fprintf(&b, `l%d: {allOf: [{$ref: '#/$defs/l%d'}, {$ref: '#/$defs/l%[2]d'}]}, `, i, i+1)
	}
	b.WriteString(`l25: {type: object}}}`)
	return b.String()
}

var repeating = `{properties: {a: {type: string,
  pattern: '^(` + strings.Repeat(`(a?){900}`, 300) + `)*$'}}}`

func costlyDefinition(key, schema string) string {
	text := map[string]string{"create": "{}", "schema": "{}", "events": "{go: {}}"}
	switch key {
	case "events":
		text[key] = "{go: {data: " + schema + "}}"
	default:
		text[key] = "{svcPublic: " + schema + "}"
	}
	return "id: a\ncreate: " + text["create"] + "\nschema: " + text["schema"] + "\nevents: " + text["events"] +
		"\nstateMachines: {m: {states: {a: {on: {go: b}}, b: {type: final}}}}\n"
}

func parseAs(t *testing.T, text string, o ParserOptions) (*Parsed, error) {
	t.Helper()
	p, err := NewParser(o)
	require.NoError(t, err)
	return p.Parse(Source{File: "a.yaml", Text: []byte(text)})
}

func TestASchemaThatCostsTooMuchIsAFaultOfTheFile(t *testing.T) {
	for schema, want := range map[string]string{
		unfolding(): "too expensive: a check costs more than 1000000",
		repeating:   "instructions, the limit is 2000",
	} {
		for key, line := range map[string]int{"create": 2, "schema": 3, "events": 4} {
			text := costlyDefinition(key, schema)
			if strings.Contains(want, "instructions") {
				line++ // that of the pattern
			}
			_, err := parseAs(t, text, ParserOptions{})
			var faults document.Faults
			assert.True(t, errors.As(err, &faults) && len(faults) == 1 && faults[0].Line == line && strings.Contains(faults[0].Reason, want),
				"%s: got %.200v, want one fault in line %d: %s", key, err, line, want)
		}
	}
}

// TestACheckOfAStoredSchemaIsCounted: what was accepted before stays readable, and what it costs is refused by its count.
func TestACheckOfAStoredSchemaIsCounted(t *testing.T) {
	const costly = "checking it against the schema costs more than 10000000"
	caller := &Caller{ID: "john.doe"}
	stored := func(text string) *Definition {
		t.Helper()
		parsed, err := parseAs(t, text, ParserOptions{Stored: true})
		require.NoError(t, err)
		return parsed.Definition
	}
	d := stored(costlyDefinition("events", unfolding()))
	r, err := d.Create(Creation{ID: "i", Caller: caller, Now: time.Unix(1, 0)})
	require.NoError(t, err)
	_, err = d.Step(&r.Instance, Event{Name: "go", Caller: caller, Now: time.Unix(2, 0)})
	assert.True(t, errors.Is(err, ErrInvalidData) && strings.Contains(err.Error(), costly), "event: got %v, want %s", err, costly)
	for _, key := range []string{"create", "schema"} {
		_, err := stored(costlyDefinition(key, unfolding())).Create(Creation{ID: "i", Caller: caller, Now: time.Unix(1, 0)})
		assert.True(t, errors.Is(err, ErrInvalidData) && strings.Contains(err.Error(), costly), "%s: got %v, want %s", key, err, costly)
	}
	_, err = parseAs(t, costlyDefinition("events", repeating), ParserOptions{Stored: true})
	assert.Error(t, err, "a stored pattern of any size is compiled")
}

func TestTheSizeOfTheDataDecidesWhatACheckCosts(t *testing.T) {
	for _, c := range []struct {
		schema string
		value  func(n int) string
		few, n int
	}{
		{`{"items":{"pattern":"^((a?){200})*$"}}`, func(n int) string { return `["` + strings.Repeat("a", n) + `!"]` }, 10_000, 100_000},
		{`{"items":{"$ref":"#"},"allOf":[{"items":{"$ref":"#"}}]}`, func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }, 8, 30},
		{`{"items":{"enum":[` + strings.Repeat(`"x",`, 2000) + `1]}}`, func(n int) string { return `[` + strings.Repeat(`"y",`, n) + `1]` }, 1000, 10_000},
	} {
		s, err := schema.Compile(data.Value(c.schema), nil)
		require.NoError(t, err)
		err = s.Check(data.Value(c.value(c.few)))
		assert.False(t, err != nil && strings.Contains(err.Error(), "costs"), "%.40s: %d: got %v", c.schema, c.few, err)
		err = s.Check(data.Value(c.value(c.n)))
		assert.True(t, err != nil && strings.Contains(err.Error(), "costs more than"), "%.40s: %d: got %.100v, want a refusal by its cost", c.schema, c.n, err)
		assert.LessOrEqual(t, len(s.Unreachable(data.Value(c.value(c.n)))), 200, "%.40s: too many are unreachable", c.schema)
	}
}

// BenchmarkCheck is the check of a form, of a list of 200 positions, and of a tree.
func BenchmarkCheck(b *testing.B) {
	const position = `{"type":"object","required":["sku","qty"],"properties":{"sku":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{4}$"},"qty":{"type":"integer","minimum":1},"note":{"type":"string","maxLength":200},"unit":{"enum":["kg","m","piece"]}},"additionalProperties":false}`
	const order = `{"type":"object","properties":{"customer":{"type":"string","minLength":1},"date":{"type":"string"},"amount":{"type":"number","minimum":0},"items":{"type":"array","items":` + position + `}}}`
	const tree = `{"type":"object","properties":{"name":{"type":"string"},"below":{"type":"array","items":{"$ref":"#"}}}}`
	items := strings.TrimSuffix(strings.Repeat(`{"sku":"AB-1234","qty":3,"note":"as agreed","unit":"kg"},`, 200), ",")
	for _, c := range []struct{ name, schema, value string }{
		{"form", order, `{"customer":"ACME","date":"2026-11-28","amount":12.5,"items":[{"sku":"AB-1234","qty":3,"unit":"kg"}]}`},
		{"list", order, `{"customer":"ACME","date":"2026-11-28","amount":12.5,"items":[` + items + `]}`},
		{"tree", tree, `{"name":"a","below":[{"name":"b","below":[{"name":"c"},{"name":"d"}]},{"name":"e","below":[]}]}`},
	} {
		s, err := schema.Compile(data.Value(c.schema), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Check(data.Value(c.value)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
