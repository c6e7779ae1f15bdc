package trace

import "testing"

// BenchmarkOff is what a request costs more where nobody collects traces.
func BenchmarkOff(b *testing.B) {
	var t *Tracer
	b.ReportAllocs()
	for b.Loop() {
		request := t.Continue("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "request", Server)
		work := request.Below("event")
		work.Committing()
		work.Committed(nil)
		work.End(nil)
		request.Answered(200)
		request.End(nil)
	}
}
