package metric

import "testing"

// BenchmarkLatency is what a request costs more because its time is recorded; the clock, twice, comes to it.
func BenchmarkLatency(b *testing.B) {
	of := NewLatency().Of("/workflow/api/v1/event", "POST")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for seconds := .0001; pb.Next(); seconds += .0000001 {
			of.Observe(seconds)
		}
	})
}
