package operate

import (
	"testing"
	"time"

	"troupe/gateway/api"
)

// TestVitalsAreReadSeldom holds gateway/INTERFACE.md, "Service health".
func TestVitalsAreReadSeldom(t *testing.T) {
	var v vitalsReading
	asked := 0
	ask := func() api.Vitals { asked++; return api.Vitals{Work: api.WorkVitals{Events: int64(asked)}} }
	if v.read(nil) != nil || v.read(ask).Work.Events != 1 {
		t.Error("the first answer is not what was asked for")
	}
	v.at = time.Now().Add(time.Hour) // not old, however slow the machine is
	if v.read(ask).Work.Events != 1 || asked != 1 {
		t.Error("it was asked again at once")
	}
	v.at = time.Now().Add(-vitalsEvery)
	if v.read(ask).Work.Events != 2 {
		t.Error("it was not asked again")
	}
}
