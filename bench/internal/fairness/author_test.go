package fairness

import (
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/statemachine"
)

// TestWhatAnAuthorPublishesIsADefinition: an attack that is refused is refused for its cost, not for a slip.
func TestWhatAnAuthorPublishesIsADefinition(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	texts := map[string]string{
		"clock": schedules(100), "spin": spinning, "hidden": hidden, "fork": forking(), "wide": wide(), "guarded": guards(5, 2000),
		"doubling": doubling(5), "pattern": patterned(2, 100),
	}
	for id, text := range texts {
		if parsed, err := parser.Parse(statemachine.Source{File: id + ".yaml", Text: []byte(text)}); err != nil {
			t.Errorf("%s: %v", id, err)
		} else if string(parsed.ID) != id {
			t.Errorf("%s: got the id %q", id, parsed.ID)
		}
	}
}
