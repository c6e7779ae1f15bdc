package peer

import (
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
