package script_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/simulation/script"
)

// TestADialogueShowsWhatAnInstanceIsLike, and what was refused, and goes on behind that.
func TestADialogueShowsWhatAnInstanceIsLike(t *testing.T) {
	known := office(t)
	steps, err := script.ParseSteps("body", []byte(`[
		{"as": "ann", "create": {}}, {"as": "ann", "send": "approve"}, {"as": "ann", "send": "ask", "data": {"days": 5}}, {"as": "bob", "send": "approve"}
	]`), "trip", known)
	require.NoError(t, err)
	begin := script.DefaultNow
	answer, err := script.Simulate(known, "trip", begin, steps, func() time.Time { return begin })
	require.NoError(t, err)
	text := string(answer)
	for _, want := range []string{
		`{"steps":[{"state":{"_id":"`, `"error":{"status":`, `"title":"Decide about ann","for":["boss"]`, `"events":{"ann":["ask"]}`, `"sent":[{"webhook":"bank","body":{"days":5}}]`,
	} {
		assert.Contains(t, text, want)
	}
	again, err := script.Simulate(known, "trip", begin, steps, func() time.Time { return begin })
	require.NoError(t, err)
	assert.Equal(t, text, string(again), "the same steps have another result")

	late := begin
	_, err = script.Simulate(known, "trip", begin, steps, func() time.Time { late = late.Add(3 * time.Second); return late })
	assert.ErrorIs(t, err, failure.ErrInvalid)
	_, err = script.ParseSteps("body", []byte(`[{"as": "ann", "sent": "ask"}]`), "trip", known)
	assert.ErrorContains(t, err, "sent")
}
