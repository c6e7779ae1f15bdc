package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/servertest"
)

func notices(t *testing.T, seq iter.Seq2[*Notice, error]) (next func() (*Notice, error), stop func()) {
	t.Helper()
	pull, stop := iter.Pull2(seq)
	return func() (*Notice, error) {
		n, err, ok := pull()
		require.True(t, ok, "the watch has ended")
		return n, err
	}, stop
}

// endOf is the error that a watch ends with, which brings nothing else.
func endOf(t *testing.T, watch iter.Seq2[*Notice, error]) (end error) {
	t.Helper()
	for n, err := range watch {
		assert.True(t, n == nil && end == nil, "got %+v, %v, want one error alone", n, err)
		end = err
	}
	return end
}

// TestWatchGoesOn breaks the stream in several ways; no entry is missing and
// none comes twice.
func TestWatchGoesOn(t *testing.T) {
	s, c := started(t, Options{HTTP: unkept()})
	id := s.Create(`{}`, "submit")
	var waits []time.Duration
	c.pause = func(ctx context.Context, wait time.Duration) error {
		waits = append(waits, wait)
		s.Send(id, "note")
		return ctx.Err()
	}
	opened := make(chan string, 100)
	var reasons []error
	next, stop := notices(t, c.Watch(t.Context(), WatchRequest{
		WorkflowID: "leave",
		Opened:     func(id string) { opened <- id },
		Broken:     func(err error, _ time.Duration) { reasons = append(reasons, err) },
	}))
	defer stop()
	go func() { <-opened; s.Send(id, "note") }()
	want := uint64(3) // behind the creation and the submission
	expect := func() (place string) {
		t.Helper()
		n, err := next()
		require.True(t, err == nil && n.Entry != nil && n.Entry.Sequence == want && n.Entry.Entry.TransitionEvent == "note", "%v %v %v", n, err, want)
		want++
		return n.ID
	}
	place := expect()
	s.Fail("watch", servertest.Fault{Status: 503, RetryAfter: "10"}, servertest.Fault{}, servertest.Fault{Status: 500})
	s.Drain()
	for range 4 { // drained, 503, cut, 500
		expect()
	}
	assert.True(t, len(reasons) == 4 && errors.Is(reasons[0], errEnded), "got the reasons %v", reasons)
	wantStatus(t, reasons[1], 503, "")
	// The service says 2 s; it doubles, and a longer Retry-After is kept.
	for i, least := range []time.Duration{2, 10, 8, 16} {
		least *= time.Second
		assert.False(t, waits[i] < least || waits[i] > least*3/2, "wait %d: got %v, want %v to half as much again", i, waits[i], least)
	}
	for i, r := range s.Requests()[1:] {
		assert.Equal(t, place, r.Header.Get("Last-Event-ID"), "request %d: got Last-Event-ID", i+1)
	}
	s.Drain() // the wait begins anew after a success
	expect()
	got := waits[4]
	assert.True(t, got >= 2*time.Second && got <= 3*time.Second, "got the wait %v after a success, want 2 to 3 s", got)
	s.Fail("watch", servertest.Fault{Status: 401, Code: "Unauthorized"}) // the token was revoked
	s.Drain()
	_, err := next()
	wantStatus(t, err, 401, "Unauthorized")
}

func TestWatchCancelled(t *testing.T) {
	s, c := started(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	s.Create(`{}`)
	watch := c.Watch(ctx, WatchRequest{WorkflowID: "leave", Opened: func(string) { cancel() }})
	assert.ErrorIs(t, endOf(t, watch), context.Canceled)
}

// TestWatchSilence holds that a stream which brings nothing is given up.
func TestWatchSilence(t *testing.T) {
	c := handled(t, Options{SilenceMax: 20 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "retry: 1\nid: 5\n\n")
		if err := http.NewResponseController(w).Flush(); err == nil {
			<-r.Context().Done()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var reasons []error
	watch := c.Watch(ctx, WatchRequest{WorkflowID: "leave", Broken: func(err error, _ time.Duration) {
		if reasons = append(reasons, err); len(reasons) == 2 {
			cancel()
		}
	}})
	assert.ErrorIs(t, endOf(t, watch), context.Canceled)
	assert.True(t, len(reasons) == 2 && errors.Is(reasons[0], errSilent) && errors.Is(reasons[1], errSilent), "got the reasons %v, want silence twice", reasons)
}

type chunked struct {
	text string
	n    int
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.text)
	c.text = c.text[n:]
	return n, nil
}

func blocksOf(in io.Reader, bytesMax int) (blocks []string, err error) {
	s := newStreamReader(in, bytesMax)
	for {
		b, err := s.next()
		if err != nil {
			return blocks, err
		}
		blocks = append(blocks, shown(&b))
	}
}

func shown(b *block) string {
	data := "-"
	if b.data != nil {
		data = strconv.Quote(string(b.data))
	}
	retry := "-"
	if b.retry >= 0 {
		retry = strconv.FormatInt(b.retry.Milliseconds(), 10)
	}
	return fmt.Sprintf("%s %s %q %s", b.kind, data, b.id, retry)
}

// TestStream plays testdata/stream: texts as Go quotes them, read in pieces of several sizes, and their blocks.
func TestStream(t *testing.T) {
	datadriven.RunTest(t, "testdata/stream/blocks.txt", func(t *testing.T, d *datadriven.TestData) string {
		text, err := strconv.Unquote(d.Input)
		require.NoError(t, err, d.Input)
		read := func(size int) string {
			blocks, err := blocksOf(&chunked{text, size}, 64)
			return strings.Join(append(blocks, fmt.Sprintln(err)), "\n")
		}
		for _, size := range []int{1, 2, 3, 7} {
			assert.Equal(t, read(4096), read(size), "in pieces of %d", size)
		}
		return read(4096)
	})
}

func TestStreamError(t *testing.T) {
	broken := errors.New("broken")
	got, err := blocksOf(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 64)
	assert.True(t, len(got) == 1 && errors.Is(err, broken), "got %v, %v, want one block and the error", got, err)
}

// FuzzStream: wherever the bytes are split, the blocks are the same, and none is longer than it may be.
func FuzzStream(f *testing.F) {
	f.Add("retry: 2000\nid: 1\n\nid: 2\nevent: entry\ndata: {}\n\n: beat\n\n", uint8(3))
	f.Add("data:b\r\n\r\ndata\n\n", uint8(1))
	f.Add("retry: 99999999999999999999\nevent\n\n", uint8(2))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		want, wantErr := blocksOf(strings.NewReader(text), 64)
		got, err := blocksOf(&chunked{text, int(size) + 1}, 64)
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, errTooLong), "got %v", err)
		assert.Equal(t, fmt.Sprint(want, wantErr), fmt.Sprint(got, err))
	})
}

func BenchmarkStream(b *testing.B) {
	entry := []byte("id: 123456789\nevent: entry\ndata: " + strings.Repeat("x", 400) + "\n\n")
	b.SetBytes(int64(len(entry)))
	text := bytes.Repeat(entry, b.N)
	s := newStreamReader(bytes.NewReader(text), 1<<20)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := s.next(); err != nil {
			b.Fatal(err)
		}
	}
}
