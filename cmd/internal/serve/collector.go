package serve

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// heapRoomBytes is the least that is allocated between two garbage collections. With Go's rule a small heap was
	// collected several times per second under load, a tenth of the processor time of an event.
	heapRoomBytes      = 128 << 20
	heapRoomPercentMin = 50 // the least room beside a large heap, in per cent of it
)

// GOGC in the environment wins, and GOMEMLIMIT bounds the memory in any case (package runtime, "Environment
// Variables").
func paceCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	// NB: a finalizer runs once after the collection that found its object dead; it brings the object back for the next
	// one.
	type collected struct {
		percent int
		_       [3]int
	}
	var pace func(c *collected)
	pace = func(c *collected) {
		if percent := roomPercent(usedBytes()); changesMuch(c.percent, percent) {
			debug.SetGCPercent(percent)
			c.percent = percent
		}
		runtime.SetFinalizer(c, pace)
	}
	pace(&collected{})
}

func roomPercent(used uint64) int {
	return max(heapRoomPercentMin, int(math.Ceil(100*heapRoomBytes/float64(max(used, 8<<20)))))
}

func changesMuch(from, to int) bool { return from == 0 || to < from-from/8 || to > from+from/8 }

// usedBytes is what GOGC is a percentage of (runtime/debug, "SetGCPercent").
func usedBytes() (sum uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			sum += s.Value.Uint64()
		}
	}
	return sum
}
