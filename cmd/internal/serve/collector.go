package serve

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// heapRoomBytes is how much is allocated between two garbage collections at least. With Go's rule, as much as is
	// alive, a small heap was collected several times a second under load, which took a tenth of the processor time of
	// an event.
	heapRoomBytes      = 128 << 20
	heapRoomPercentMin = 50 // the least room beside a large heap, in per cent of it
)

// paceCollector sets, from now on and anew after each collection, how much is allocated until the next. GOGC in the
// environment wins, and GOMEMLIMIT bounds the memory in any case (package runtime, "Environment Variables").
func paceCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	// NB: a finalizer runs once after the collection that found its object dead; it brings the object back for the next
	// one. The object is not so small that it would share its place with others, whose life would be its own
	// (runtime.SetFinalizer).
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

// roomPercent is GOGC when so many bytes are in use.
func roomPercent(used uint64) int {
	return max(heapRoomPercentMin, int(math.Ceil(100*heapRoomBytes/float64(max(used, 8<<20)))))
}

// changesMuch says whether a new percentage is worth stopping the program for a moment.
func changesMuch(from, to int) bool { return from == 0 || to < from-from/8 || to > from+from/8 }

// usedBytes is what GOGC is a percentage of: what the last collection found alive, and what it looks through besides
// (runtime/debug, "SetGCPercent").
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
