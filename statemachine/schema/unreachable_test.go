package schema

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

// TestWhatIsUnreachableNeverFits holds that a value with a place that does not fit its type or choices fails the schema.
func TestWhatIsUnreachableNeverFits(t *testing.T) {
	rule := rapid.SampledFrom([]string{`{}`, `{"type":"string"}`, `{"type":["integer","null"]}`, `{"enum":["x",1]}`, `{"type":"array","items":{"type":"boolean"}}`, `{"properties":{"a":{"type":"string"}}}`})
	value := rapid.SampledFrom([]string{`null`, `1`, `"x"`, `"y"`, `[true]`, `[1]`, `{"a":1}`, `{"a":"x"}`, `{}`})
	unreachable := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := compiled(t, `{"properties":{"a":`+rule.Draw(rt, "a")+`,"b":`+rule.Draw(rt, "b")+`}}`)
		v := data.Value(`{"a":` + value.Draw(rt, "value of a") + `,"b":` + value.Draw(rt, "value of b") + `}`)
		for _, place := range s.Unreachable(v) {
			unreachable++
			require.Error(rt, s.Check(v), "%s takes %s, and %s unreachable", s.Text(), v, place.Pointer)
		}
	})
	assert.NotZero(t, unreachable, "nothing was unreachable: the test tested nothing")
	many := `{"a":1`
	for n := range 2 * unreachableMax {
		many += fmt.Sprintf(`,"x%d":1`, n)
	}
	assert.Len(t, compiled(t, `{"properties":{"a":{}}}`).Unreachable(data.Value(many+"}")), unreachableMax)
}
