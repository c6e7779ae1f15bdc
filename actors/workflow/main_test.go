package workflow

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A tenth of the time of these tests went to the collector: they make much garbage and keep little.
	debug.SetGCPercent(400)
	goleak.VerifyTestMain(m)
}
