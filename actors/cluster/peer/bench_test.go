package peer

import (
	"context"
	"net/http"
	"testing"

	"github.com/rs/zerolog"
)

func benchPorts(b *testing.B) (one, two *Port) {
	b.Helper()
	a, at := newAuthority(testCluster), &addresses{}
	start := func(n int) *Port {
		p := must(New(Options{
			Address: "127.0.0.1:0", Identity: member(a, nodeID(n)), Resolve: at.resolve, Log: zerolog.Nop(),
			Calls: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		}))
		if err := p.Start(); err != nil {
			b.Fatal(err)
		}
		at.set(nodeID(n), p.Addr().String())
		b.Cleanup(func() { _ = p.Stop(ended()) })
		return p
	}
	return start(1), start(2)
}

// BenchmarkHandshake opens a stream, both ends in one process.
func BenchmarkHandshake(b *testing.B) {
	one, two := benchPorts(b)
	from, to := must(two.Streams(1)), must(one.Streams(1))
	for b.Loop() {
		c, err := from.Dial(string(nodeID(1)), 0)
		if err != nil {
			b.Fatal(err)
		}
		accepted, err := to.Accept()
		if err != nil {
			b.Fatal(err)
		}
		_, _ = c.Close(), accepted.Close()
	}
}

// BenchmarkCall sends one call after the other, or many at once.
func BenchmarkCall(b *testing.B) {
	_, two := benchPorts(b)
	send := func() {
		if _, err := call(context.Background(), two, nodeID(1), "/"); err != nil {
			b.Error(err)
		}
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			send()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				send()
			}
		})
	})
}
