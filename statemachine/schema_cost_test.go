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
