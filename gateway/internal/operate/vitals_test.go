package operate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/api"
)

// TestVitalsAreReadSeldom holds gateway/INTERFACE.md, "Service health".
func TestVitalsAreReadSeldom(t *testing.T) {
	var v vitalsReading
	asked := 0
	ask := func() api.Vitals { asked++; return api.Vitals{Work: api.WorkVitals{Events: int64(asked)}} }
	assert.True(t, v.read(nil) == nil && v.read(ask).Work.Events == 1, "the first answer is not what was asked for")
	v.at = time.Now().Add(time.Hour) // not old, however slow the machine is
	assert.True(t, v.read(ask).Work.Events == 1 && asked == 1, "it was asked again at once")
	v.at = time.Now().Add(-vitalsEvery)
	assert.Equal(t, int64(2), v.read(ask).Work.Events, "it was not asked again")
}
