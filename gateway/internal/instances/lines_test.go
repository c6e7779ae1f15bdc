package instances

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/internal/kernel"
	"troupe/gateway/toll"
)

// TestTheReaderOfLinesIsStopped, also one that is just about to read.
func TestTheReaderOfLinesIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := kernel.New(kernel.Options{}, nil, kernel.Hooks{})
		require.NoError(t, err)
		caller, conn := net.Pipe()
		defer func() { _ = caller.Close() }()
		w := &lateReader{ResponseWriter: httptest.NewRecorder(), Conn: conn, reading: make(chan struct{}), second: make(chan struct{})}
		source := new(Group).streamItems(&kernel.Exchange{Kernel: s, Writer: w, Request: &http.Request{Body: conn}, Slot: kernel.Slot{Usage: new(kernel.UserUsage)}})
		<-w.reading
		began := time.Now()
		source.close()
		assert.Equal(t, lingerMax, time.Since(began), "stopping took")
	})
}

// TestTheMemoryOfLinesIsCounted: that of both buffers, which take turns.
func TestTheMemoryOfLinesIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := kernel.New(kernel.Options{}, nil, kernel.Hooks{})
		require.NoError(t, err)
		x := &kernel.Exchange{Kernel: s, Writer: httptest.NewRecorder(), Slot: kernel.Slot{Usage: new(kernel.UserUsage)}}
		g := new(Group)
		line := strings.Repeat("x", 3<<20)
		l := &lineReader{x: x, keep: func(size int) error { return g.keepLines(x, size) }, control: http.NewResponseController(x.Writer), body: strings.NewReader(line + "\n" + line + "\n" + line)}
		for c := (chunk{}); c.err == nil; {
			c = l.read()
		}
		kept := int64(cap(l.buffers[0]) + cap(l.buffers[1]))
		most := x.BodyKept
		assert.True(t, kept >= int64(2*len(line)) && most >= kept && most <= 2*kept, "%d bytes were counted, two buffers have %d", most, kept)
		g.ReleaseBody(x)
		assert.True(t, g.Shares.Bytes.Load() == 0 && x.Usage.BatchBytes.Load() == 0, "bytes are counted that nobody has any more")
	})
}

// TestLinesThatWaitToBePaidEndWithTheirBatch: nobody waits for what nobody wants.
func TestLinesThatWaitToBePaidEndWithTheirBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := kernel.New(kernel.Options{}, nil, kernel.Hooks{})
		require.NoError(t, err)
		usage := new(kernel.UserUsage)
		x := &kernel.Exchange{Kernel: s, Slot: kernel.Slot{Usage: usage}}
		for ok := true; ok; { // as much as is ever charged
			_, ok = x.Charge(toll.CreditBytes / 16)
		}
		stopped := make(chan struct{})
		ended := make(chan bool)
		go func() { ended <- (&lineReader{x: x, stopped: stopped, total: kernel.BodyFirstBytes + 1}).pay() }()
		synctest.Wait()
		close(stopped)
		assert.False(t, <-ended, "lines are paid for that nobody wants")
	})
}

// lateReader is an answer whose first deadline, which the reader of lines sets, comes behind
// the second, with which the reading is stopped.
type lateReader struct {
	http.ResponseWriter
	net.Conn
	calls           atomic.Int32
	reading, second chan struct{}
}

func (w *lateReader) Write(p []byte) (int, error) { return w.ResponseWriter.Write(p) }

func (w *lateReader) SetReadDeadline(at time.Time) error {
	switch w.calls.Add(1) {
	case 1:
		close(w.reading)
		<-w.second
	case 2:
		defer close(w.second)
	}
	return w.Conn.SetReadDeadline(at)
}
