package frame

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
)

// unsized is a body whose length nobody says.
type unsized struct{ io.Reader }

// TestRoundTrip has bodies of many lengths go both ways, with all of the header.
func TestRoundTrip(t *testing.T) {
	e := connect(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "value", r.Context().Value(key{}))
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		w.Header().Add("Seen", fmt.Sprintf("%s %s %s %d %q %d", r.Method, r.URL, r.Host, r.ContentLength, r.Header["Line"], len(body)))
		w.Header().Add("Seen", "twice")
		if r.URL.Query().Has("flush") {
			assert.NoError(t, http.NewResponseController(w).Flush())
		}
		w.WriteHeader(http.StatusTeapot)
		_, err = w.Write(body)
		assert.NoError(t, err)
	})
	for _, n := range []int{0, 1, 300, pieceMax - 1, pieceMax, pieceMax + 1, window, window + 1, 3*window + 7} {
		for _, known := range []bool{true, false} {
			for _, flush := range []bool{true, false} {
				body := strings.Repeat("0123456789abcde", n/15+1)[:n]
				target := "/a%2Fb?x=%7B"
				if flush {
					target += "&flush"
				}
				r := newRequest(t, t.Context(), http.MethodPut, target, body)
				r.Host, r.Header["Line"] = "example.org", []string{"one", "", "ü"}
				length := n
				if !known {
					r.Body, r.ContentLength, length = io.NopCloser(unsized{strings.NewReader(body)}), -1, -1
				}
				a, err := e.RoundTrip(r)
				require.NoError(t, err)
				got, err := io.ReadAll(a.Body)
				require.NoError(t, err)
				require.NoError(t, a.Body.Close())
				name := fmt.Sprintf("%d bytes, known %t, flush %t", n, known, flush)
				assert.Equal(t, body, string(got), name)
				assert.Equal(t, []string{fmt.Sprintf("PUT %s example.org %d %q %d", target, length, r.Header["Line"], n), "twice"}, a.Header["Seen"], name)
				status := http.StatusTeapot
				if flush {
					status = http.StatusOK // which the flush has sent
				}
				assert.Equal(t, status, a.StatusCode, name)
				if want := int64(n); !flush && n <= pieceMax {
					assert.True(t, a.ContentLength == want && a.Header.Get("Content-Length") == fmt.Sprint(n), "%s: got the length %d, %v", name, a.ContentLength, a.Header)
				}
			}
		}
	}
	assert.Empty(t, e.link.streams, "streams that are left")
}

func TestAnswersWithoutABody(t *testing.T) {
	e := connect(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/length":
			w.Header()["Content-Length"] = []string{"5"}
			_, _ = io.WriteString(w, "hello")
		case "/write":
			_, _ = io.WriteString(w, "hello")
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/early":
			w.WriteHeader(http.StatusEarlyHints)
		}
	})
	for _, c := range []struct {
		method, path, length string
		status               int
	}{
		{http.MethodHead, "/length", "5", 200},
		{http.MethodHead, "/write", "5", 200},
		{http.MethodHead, "/", "", 200},
		{http.MethodGet, "/none", "", 204},
		{http.MethodGet, "/early", "0", 200},
		{http.MethodGet, "/", "0", 200},
	} {
		a, err := e.RoundTrip(newRequest(t, t.Context(), c.method, c.path, ""))
		require.NoError(t, err)
		body, err := io.ReadAll(a.Body)
		assert.True(t, err == nil && len(body) == 0 && a.StatusCode == c.status && a.Header.Get("Content-Length") == c.length, "%+v: got %d %v %q, %v", c, a.StatusCode, a.Header, body, err)
		_ = a.Body.Close()
	}
}

// TestSlowReadersStallNobody has a caller not read an answer, and a handler not read a request: each holds up its own
// body, once a window of it is under way, and no other.
func TestSlowReadersStallNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Int64
		read := make(chan struct{})
		e := connect(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/long":
				for range 64 {
					n, err := w.Write(make([]byte, pieceMax))
					written.Add(int64(n))
					assert.NoError(t, err)
				}
			case "/unread":
				<-read
				n, err := io.Copy(io.Discard, r.Body)
				assert.True(t, n == 64*pieceMax && err == nil, "got %d bytes, %v", n, err)
			default:
				echo(w, r)
			}
		})
		var slow []*http.Response
		for range 20 {
			a, err := e.RoundTrip(newRequest(t, t.Context(), http.MethodGet, "/long", "")) //nolint:bodyclose // it is read below
			require.NoError(t, err)
			slow = append(slow, a) //nolint:bodyclose // likewise
		}
		sent := 0
		r := newRequest(t, t.Context(), http.MethodPost, "/unread", "")
		r.ContentLength, r.Body = -1, io.NopCloser(unsized{io.TeeReader(bytes.NewReader(make([]byte, 64*pieceMax)), counting{&sent})})
		var all sync.WaitGroup
		all.Go(func() {
			a, err := e.RoundTrip(r)
			if assert.NoError(t, err) {
				_ = a.Body.Close()
			}
		})
		synctest.Wait()
		e.works(t)
		// NB: a piece waits in the writer of the answer, and one with the reader of the request.
		assert.LessOrEqual(t, written.Load(), int64(20*(window+pieceMax)), "bytes of answers that nobody reads")
		assert.LessOrEqual(t, sent, window+pieceMax, "bytes of a request that nobody reads")
		for _, a := range slow {
			n, err := io.Copy(io.Discard, a.Body)
			assert.True(t, n == 64*pieceMax && err == nil, "got %d bytes, %v", n, err)
		}
		close(read)
		all.Wait()
		e.works(t)
	})
}

type counting struct{ n *int }

func (c counting) Write(p []byte) (int, error) {
	*c.n += len(p)
	return len(p), nil
}

// TestCancel: the handler's context ends when its caller's does, or the caller closes the body.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, begun := make(chan error, 1), make(chan struct{})
		e := connect(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/echo" {
				echo(w, r)
				return
			}
			if r.URL.Path == "/begun" {
				_, _ = w.Write(nil)
				_ = http.NewResponseController(w).Flush()
			}
			begun <- struct{}{}
			<-r.Context().Done()
			_, err := w.Write(make([]byte, 2*window))
			ended <- errors.Join(err, r.Context().Err())
		})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_, err := e.RoundTrip(newRequest(t, ctx, http.MethodGet, "/", "")) //nolint:bodyclose // there is none
			assert.True(t, errors.Is(err, context.Canceled) && !errors.Is(err, ErrNotSent), "got %v", err)
		})
		<-begun
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled, "before the answer")
		all.Wait()

		for _, end := range []func(a *http.Response, cancel func()){
			func(a *http.Response, _ func()) { _ = a.Body.Close() },
			func(a *http.Response, cancel func()) {
				cancel()
				_, err := a.Body.Read(make([]byte, 1))
				assert.ErrorIs(t, err, context.Canceled)
				_ = a.Body.Close()
			},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			all.Go(func() { <-begun })
			a, err := e.RoundTrip(newRequest(t, ctx, http.MethodGet, "/begun", "")) //nolint:bodyclose // end does
			require.NoError(t, err)
			all.Wait()
			end(a, cancel)
			assert.ErrorIs(t, <-ended, context.Canceled, "in the answer")
			cancel()
		}
		_, err := e.RoundTrip(newRequest(t, ctx, http.MethodGet, "/", "")) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, ErrNotSent, "a context that has ended")
		e.works(t)
		assert.Empty(t, e.link.streams, "streams that are left")
	})
}

// TestBrokenOff has answers end before their end: the caller never takes that for the end.
func TestBrokenOff(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(e *pair)
		want error
	}{
		{"the handler gives up", func(*pair) { panic(http.ErrAbortHandler) }, ErrBroken},
		{"the handler panics", func(*pair) { panic("broken") }, ErrBroken},
		{"the connection is cut", func(e *pair) { _ = e.far.Close() }, io.ErrUnexpectedEOF},
	} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, begun %t", c.name, begun), func(t *testing.T) {
				var e *pair
				e = connect(t, func(w http.ResponseWriter, _ *http.Request) {
					if begun {
						_, _ = io.WriteString(w, "a part")
						assert.NoError(t, http.NewResponseController(w).Flush())
					}
					c.do(e)
				})
				a, err := e.RoundTrip(newRequest(t, t.Context(), http.MethodPost, "/", "x"))
				var got []byte
				if err == nil {
					got, err = io.ReadAll(a.Body)
					_ = a.Body.Close()
				}
				assert.True(t, errors.Is(err, c.want) && !errors.Is(err, ErrNotSent), "got %q and %v", got, err)
				if c.name == "the handler panics" {
					assert.Equal(t, 1, strings.Count(e.log.String(), `"panic":"broken"`), e.log.String())
				}
				if e.Ended() {
					_, _, err = e.ask(t, http.MethodGet, "/", "")
					assert.ErrorIs(t, err, ErrNotSent, "behind the end")
				}
			})
		}
	}
}

// TestNotSent: nothing is done beyond the bound and while the server stops, and what is being answered is answered to
// its end.
func TestNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 100
		var handled atomic.Int64
		answer := make(chan struct{})
		e := connect(t, func(w http.ResponseWriter, _ *http.Request) {
			handled.Add(1)
			<-answer
			_, _ = w.Write(make([]byte, pieceMax))
		})
		var all sync.WaitGroup
		for range bound {
			all.Go(func() {
				_, got, err := e.ask(t, http.MethodGet, "/", "")
				assert.True(t, err == nil && len(got) == pieceMax, "got %d bytes, %v", len(got), err)
			})
		}
		synctest.Wait()
		_, _, err := e.ask(t, http.MethodGet, "/", "")
		assert.ErrorIs(t, err, ErrNotSent, "beyond the bound")
		all.Go(func() {
			e.server.Stop(t.Context())
			_ = e.far.Close() // as the port does
		})
		synctest.Wait()
		_, _, err = e.ask(t, http.MethodGet, "/", "")
		assert.ErrorIs(t, err, ErrNotSent, "while the server stops")
		close(answer)
		all.Wait()
		assert.Equal(t, int64(bound), handled.Load(), "requests were handled")
	})
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := connect(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		var all sync.WaitGroup
		all.Go(func() { _, _, _ = e.ask(t, http.MethodGet, "/", "") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		e.server.Stop(ctx)
		assert.Equal(t, time.Second, time.Since(begun))
		e.Close()
		all.Wait()
	})
}

// hole is a connection that takes everything and brings nothing once it is broken.
type hole struct {
	net.Conn
	broken *atomic.Bool
}

func (h hole) Write(p []byte) (int, error) {
	if h.broken.Load() {
		return len(p), nil
	}
	return h.Conn.Write(p)
}

// TestSilence: a quiet connection is kept, and one over which nothing comes ends with everything on it, at both ends.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		gone := make(chan time.Time, 1)
		e := connectBy(t, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			gone <- time.Now()
		}, func(c net.Conn) net.Conn { return hole{c, &broken} })
		var all sync.WaitGroup
		var err error
		all.Go(func() { _, _, err = e.ask(t, http.MethodGet, "/", "") })
		clocktest.Advance(time.Hour)
		synctest.Wait()
		require.NoError(t, e.link.cause(), "a quiet connection")
		broken.Store(true)
		begun := time.Now()
		took := (<-gone).Sub(begun)
		assert.True(t, took >= 3*time.Second && took <= SilenceMax, "the answering end noticed after %s", took)
		all.Wait()
		assert.Error(t, err)
		e.over.Wait()
		assert.ErrorIs(t, e.link.cause(), io.ErrUnexpectedEOF)
	})
}

// TestDeadlines are those that handlers set, at once and while they wait.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Duration, 2)
		e := connect(t, func(w http.ResponseWriter, r *http.Request) {
			begun, control := time.Now(), http.NewResponseController(w)
			var waiting sync.WaitGroup
			waiting.Go(func() {
				_, err := io.ReadAll(r.Body)
				assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
				ended <- time.Since(begun)
			})
			clocktest.Advance(time.Second)
			assert.NoError(t, control.SetReadDeadline(time.Now().Add(time.Second))) // while it reads
			waiting.Wait()
			assert.NoError(t, control.SetWriteDeadline(time.Now().Add(time.Second)))
			_, err := w.Write(make([]byte, 2*window))
			assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
			ended <- time.Since(begun)
			panic(http.ErrAbortHandler)
		})
		never, stop := io.Pipe()
		defer func() { _ = stop.Close() }()
		r := newRequest(t, t.Context(), http.MethodPost, "/", "")
		r.Body, r.ContentLength = never, -1
		a, err := e.RoundTrip(r)
		require.NoError(t, err)
		assert.Equal(t, 2*time.Second, <-ended, "reading")
		assert.Equal(t, 3*time.Second, <-ended, "writing")
		_, err = io.ReadAll(a.Body)
		assert.ErrorIs(t, err, ErrBroken)
		_ = a.Body.Close()
	})
}

// TestBodiesThatFail: a request whose body cannot be read is not taken for a whole one.
func TestBodiesThatFail(t *testing.T) {
	for _, n := range []int{10, 10 * pieceMax} {
		seen := make(chan error, 1)
		e := connect(t, func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			seen <- err
		})
		r := newRequest(t, t.Context(), http.MethodPost, "/", strings.Repeat("x", n-1))
		r.ContentLength = int64(n)
		_, err := e.RoundTrip(r) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
		if n > pieceMax {
			assert.ErrorIs(t, <-seen, context.Canceled)
		} else {
			assert.ErrorIs(t, err, ErrNotSent)
		}
	}
	e := connect(t, echo)
	r := newRequest(t, t.Context(), http.MethodPost, "/", "x")
	r.Header["Large"] = []string{strings.Repeat("x", payloadMax)}
	_, err := e.RoundTrip(r) //nolint:bodyclose // there is none
	assert.True(t, errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrNotSent), "got %v, which does not say that it is of no use to try again", err)
	e.works(t)
}

// TestALargeHeaderBesideABody: what a server of net/http takes can be forwarded, with the first piece of any body.
func TestALargeHeaderBesideABody(t *testing.T) {
	e := connect(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		w.Header()["Seen"] = []string{fmt.Sprint(len(r.Header), " ", len(body))}
	})
	const taken, line = 68 << 10, "Xyzzy-12345: "
	for _, fields := range []int{1, 60, 1000} {
		r := newRequest(t, t.Context(), http.MethodPost, "/", strings.Repeat("x", pieceMax))
		for n := range fields {
			r.Header[fmt.Sprintf("Xyzzy-%05d", n)] = []string{strings.Repeat("y", taken/fields-len(line))}
		}
		a, err := e.RoundTrip(r)
		require.NoError(t, err, "%d fields", fields)
		assert.Equal(t, []string{fmt.Sprint(fields, " ", pieceMax)}, a.Header["Seen"])
		_ = a.Body.Close()
	}
}

// TestHandlersOfThoseWhoLeftCount: a caller that asks and leaves again and again has no more handlers run than others.
func TestHandlersOfThoseWhoLeftCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 100 // of connect
		var running atomic.Int64
		answer := make(chan struct{})
		e := connect(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/echo" {
				echo(w, r)
				return
			}
			running.Add(1)
			<-answer // not by its context
		})
		for n := range 2 * bound {
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() {
				_, err := e.RoundTrip(newRequest(t, ctx, http.MethodGet, "/", "")) //nolint:bodyclose // there is none
				assert.Equal(t, n >= bound, errors.Is(err, ErrNotSent), "request %d: got %v", n, err)
			})
			synctest.Wait()
			cancel()
			all.Wait()
		}
		assert.Equal(t, int64(bound), running.Load(), "handlers that run at once")
		close(answer)
		synctest.Wait()
		e.works(t)
	})
}
