package peer

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func benchPorts(b *testing.B, calls http.Handler) (one, two *Port) {
	b.Helper()
	a, at := newAuthority(testCluster), &addresses{}
	start := func(n int) *Port {
		p := must(New(Options{
			Address: "127.0.0.1:0", Identity: member(a, nodeID(n)), Resolve: at.resolve, Log: zerolog.Nop(),
			Calls: calls,
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
	one, two := benchPorts(b, nil)
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

// BenchmarkCalls makes calls like a forwarded event, at 64 and at 256 at once, both ends in one process.
func BenchmarkCalls(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) { benchCalls(b, callers) })
	}
}

func benchCalls(b *testing.B, callers int) {
	request, answer := bytes.Repeat([]byte("q"), 300), bytes.Repeat([]byte("a"), 400)
	one, two := benchPorts(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Etag"] = []string{`"7"`}
		w.Header()["Cache-Control"] = []string{"no-store"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(answer))}
		_, _ = w.Write(answer)
	}))
	_ = one
	header := http.Header{
		"Content-Type": {"application/json"}, "Authorization": {"svc.token " + strings.Repeat("t", 60)}, "User-Agent": {"troupe-client"},
		"Accept-Encoding": {"identity"}, "Prefer": {"return=minimal"},
		"Troupe-Sender": {`{"user":"alice","request":"abcdef-123456","client":"127.0.0.1"}`},
	}
	var made atomic.Int64
	var all sync.WaitGroup
	begun := spent(b)
	b.ResetTimer()
	for range callers {
		all.Go(func() {
			for made.Add(1) <= int64(b.N) {
				r := &http.Request{
					Method: http.MethodPost, Header: header, ContentLength: int64(len(request)), Body: io.NopCloser(bytes.NewReader(request)),
					URL: &url.URL{Scheme: "https", Host: string(nodeID(1)), Path: "/workflow/api/v1/event"},
				}
				ctx, cancel := context.WithCancel(b.Context())
				got, err := two.RoundTrip(r.WithContext(ctx))
				if err != nil {
					b.Error(err)
					cancel()
					return
				}
				_, _ = io.Copy(io.Discard, got.Body)
				_ = got.Body.Close()
				cancel()
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64((spent(b)-begun).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportAllocs()
}

// spent is the processor time of this process.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
