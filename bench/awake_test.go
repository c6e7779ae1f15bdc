package main

import (
	"errors"
	"runtime"
	"testing"
)

// BenchmarkAwake says how much heap an awake instance takes that was created and got one event, its data among it. It
// is to be run with -benchtime 50000x or so, and within the time after which instances go to sleep.
func BenchmarkAwake(b *testing.B) {
	h := newFixture(b)
	before := liveHeap()
	runParallel(b, func(int) func(int) error {
		return func(int) error {
			reply, err := h.createOne()
			if err == nil {
				reply, err = h.send(reply.InstanceID, 0, false)
			}
			if err == nil && len(reply.Public) == 0 {
				err = errors.New("no data")
			}
			return err
		}
	})
	b.ReportMetric(float64(liveHeap()-before)/float64(b.N), "heap-B/instance")
}

// liveHeap is how many bytes of heap are in use.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
