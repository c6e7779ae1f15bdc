package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/cputest"
	"troupe/statemachine/schema"
)

// TestPatternsOfASchemaAreReadWhileTheyAreFew: the library goes on after the first that is refused, and a file of a megabyte has room for
// hundreds.
func TestPatternsOfASchemaAreReadWhileTheyAreFew(t *testing.T) {
	for pattern, want := range map[string]string{
		`(?i)` + strings.Repeat(`[B-𞥂]`, 500): "takes too long to read",
		`(?i)[B-𞥂][B-𞥂][B-𞥂]`:                 "more than 20000 instructions together",
		`^\pL{990}$`:                          "more than 20000 instructions together",
	} {
		properties := map[string]any{}
		for i := range 200 {
			properties[fmt.Sprint(i)] = map[string]any{"pattern": fmt.Sprintf("%s%d", pattern, i)}
		}
		text, err := json.Marshal(map[string]any{"properties": properties})
		require.NoError(t, err)
		took := cputest.Watch()
		_, err = schema.Compile(text, nil)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%.30s: got %v, want %q", pattern, err, want)
		if d := took(); d > 5*time.Second { // without a bound it is minutes
			t.Errorf("%.30s: it took %v of a processor", pattern, d)
		}
	}
}

// TestDataThatIsARegularExpressionIsCounted: schemas before 2019 check the format, and so read each text.
func TestDataThatIsARegularExpressionIsCounted(t *testing.T) {
	s, err := schema.Compile([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"format":"regex"}}`), nil)
	require.NoError(t, err)
	for text, want := range map[string]string{
		`"(?i)[B-𞥂]"`: "costs more than", `"a{1000}"`: "costs more than", `"abc"`: "", `"("`: "regex",
	} {
		list := "[" + strings.Repeat(text+",", 3000) + text + "]"
		err := s.Check([]byte(list))
		assert.True(t, (err == nil) == (want == "") && !(err != nil && (!errors.Is(err, schema.ErrInvalidData) || !strings.Contains(err.Error(), want))),
			"%s: got %v, want %q", text, err, want)
	}
}
