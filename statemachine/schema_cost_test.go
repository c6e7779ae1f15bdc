package statemachine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

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
