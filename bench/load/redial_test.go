package load

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAConnectionThatEndedWhileItRestedIsNoError: the server ends each connection after one
// answer without a word of it, and the worker sees that before it sends the next request.
func TestAConnectionThatEndedWhileItRestedIsNoError(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is asked whether a connection has ended")
	}
	f := newFake(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				answer := httptest.NewRecorder()
				f.ServeHTTP(answer, r)
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", answer.Body.Len(), answer.Body)
			}
			conn.Close()
		}
	}()
	o := Options{Addr: listener.Addr().String()}
	o.EnsureDefaults()
	w := newWorker(&o, 0, new(atomic.Int64), new(atomic.Int64), new(gap))
	defer w.conn.close()
	require.NoError(t, w.prepare(t.Context(), 1))
	win := window{begin: time.Now(), end: time.Now().Add(time.Hour)}
	for range 3 {
		for !w.conn.stale() {
			runtime.Gosched()
		}
		w.conn.last = time.Time{}
		require.NoError(t, w.once(t.Context(), win, time.Now()))
	}
	result := summarize([]*worker{w}, time.Hour)
	assert.True(t, result.All.Count == 3 && result.ErrorsTotal == 0, "got %d answers, errors %v", result.All.Count, result.Errors)
}
