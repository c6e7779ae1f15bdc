package frame

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func framed(k kind, stream uint64, payload []byte) []byte {
	b := append(appendHead(nil, k, stream), payload...)
	binary.BigEndian.PutUint32(b, uint32(len(payload)))
	return b
}

func beginning(header []byte, body string) []byte {
	return appendBeginning(nil, func(b []byte) []byte { return append(b, header...) }, []byte(body))
}

func requestHeader(t testing.TB) []byte {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://a-node/event?a=b", http.NoBody)
	require.NoError(t, err)
	r.Header["A"], r.Header["B"] = []string{"1", "2"}, []string{""}
	return appendRequest(nil, r)
}

// flood is more than a reader's window.
func flood() (b []byte) {
	for range window/pieceMax + 1 {
		b = append(b, framed(kindBody, 1, make([]byte, pieceMax))...)
	}
	return b
}

// TestMalformed has each end be sent what no end sends: it ends the connection, and is not handled.
func TestMalformed(t *testing.T) {
	header := requestHeader(t)
	answer := appendAnswer(nil, 200, 0, http.Header{"A": {"1"}})
	open := framed(kindRequest, 1, beginning(header, ""))
	for name, c := range map[string]struct {
		toAnswerer, toCaller []byte
	}{
		"no kind":              {framed(0, 1, nil), framed(0, 1, nil)},
		"an unknown kind":      {framed(kindPong+1, 1, nil), framed(kindPong+1, 1, nil)},
		"a large frame":        {framed(kindBody, 1, make([]byte, payloadMax+1)), framed(kindBody, 1, make([]byte, payloadMax+1))},
		"a cut header":         {framed(kindRequest|ends, 1, beginning(header[:len(header)-1], "")), framed(kindAnswer, 1, beginning(answer[:len(answer)-1], ""))},
		"a long header":        {framed(kindRequest|ends, 1, beginning(append(bytes.Clone(header), 0), "")), framed(kindAnswer, 1, beginning(append(bytes.Clone(answer), 0), ""))},
		"a length beyond":      {framed(kindRequest|ends, 1, []byte{0, 0, 0, 9, 1}), framed(kindAnswer, 1, []byte{0, 0, 0, 9, 1})},
		"no header":            {framed(kindRequest|ends, 1, nil), framed(kindAnswer, 1, beginning(nil, "x"))},
		"another's kind":       {append(bytes.Clone(open), framed(kindAnswer, 1, beginning(answer, ""))...), framed(kindRequest, 1, beginning(header, ""))},
		"a stream twice":       {append(bytes.Clone(open), open...), append(framed(kindAnswer, 1, beginning(answer, "")), framed(kindAnswer, 1, beginning(answer, ""))...)},
		"the stream 0":         {framed(kindRequest|ends, 0, beginning(header, "")), nil},
		"a number of 3 bytes":  {framed(kindTaken, 1, make([]byte, 3)), framed(kindTaken, 1, make([]byte, 3))},
		"a status of 7":        {nil, framed(kindAnswer, 1, beginning(appendAnswer(nil, 7, 0, nil), ""))},
		"more than the window": {append(bytes.Clone(open), flood()...), append(framed(kindAnswer, 1, beginning(answer, "")), flood()...)},
	} {
		if c.toAnswerer != nil {
			near, far := net.Pipe()
			s := &Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), StreamsMax: 9, Log: zerolog.Nop()}
			var all sync.WaitGroup
			all.Go(func() { _, _ = io.Copy(io.Discard, near) })
			all.Go(func() { _, _ = near.Write(c.toAnswerer) })
			err := s.Serve(context.Background(), far)
			assert.ErrorIs(t, err, ErrProtocol, "%s, to the end that answers", name)
			_ = near.Close()
			all.Wait()
			s.Stop(t.Context()) // all handlers have ended
		}
		if c.toCaller != nil {
			near, far := net.Pipe()
			client := NewClient(near)
			var all sync.WaitGroup
			all.Go(func() { _ = client.Run() })
			all.Go(func() {
				_, _ = far.Read(make([]byte, 1)) // the request
				all.Go(func() { _, _ = io.Copy(io.Discard, far) })
				_, _ = far.Write(c.toCaller)
			})
			if a, err := client.RoundTrip(newRequest(t, t.Context(), http.MethodGet, "/", "")); err == nil {
				defer func() { _ = a.Body.Close() }() // it is not read
			}
			<-client.link.done
			assert.ErrorIs(t, client.link.cause(), ErrProtocol, "%s, to the caller", name)
			client.Close()
			all.Wait()
			_ = far.Close()
		}
	}
}

// TestHeaders holds that what is written is read as it was, and that each cut of it is refused.
func TestHeaders(t *testing.T) {
	text := string(requestHeader(t))
	r, err := parseRequest(text)
	require.NoError(t, err)
	assert.Equal(t, http.Header{"A": {"1", "2"}, "B": {""}}, r.Header)
	assert.True(t, r.Method == http.MethodPost && r.URL.String() == "/event?a=b" && r.Host == "a-node" && r.ContentLength == 0, "got %+v", r)
	answer := string(appendAnswer(nil, 404, -1, r.Header))
	a, err := parseAnswer(answer) //nolint:bodyclose // it has none
	require.NoError(t, err)
	assert.True(t, a.StatusCode == 404 && a.Status == "404 Not Found" && a.ContentLength == -1, "got %+v", a)
	assert.Equal(t, r.Header, a.Header)
	for i := range text {
		_, err := parseRequest(text[:i])
		assert.ErrorIs(t, err, ErrProtocol, "cut at %d", i)
	}
	for i := range answer {
		_, err := parseAnswer(answer[:i]) //nolint:bodyclose // likewise
		assert.ErrorIs(t, err, ErrProtocol, "cut at %d", i)
	}
}

// FuzzFrames has the end that answers read anything. What it takes for a header it writes as it was read.
func FuzzFrames(f *testing.F) {
	header := requestHeader(f)
	f.Add(framed(kindRequest|ends, 1, beginning(header, "body")))
	f.Add(append(framed(kindRequest, 1, beginning(header, "")), framed(kindBody|ends, 1, []byte("body"))...))
	f.Add(append(framed(kindRequest, 1, beginning(header, "")), framed(kindCancel, 1, nil)...))
	f.Add(append(framed(kindPing, 0, nil), framed(kindTaken, 1, []byte{0, 0, 1, 0})...))
	f.Add(framed(kindAnswer|ends, 1, beginning(appendAnswer(nil, 200, 4, http.Header{"A": {"1"}}), "body")))
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		s := &Server{StreamsMax: 4, Log: zerolog.Nop(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			again, err := parseRequest(string(appendRequest(nil, r)))
			assert.True(t, err == nil && again.Method == r.Method && again.Host == r.Host && len(again.Header) == len(r.Header), "%v: got %+v of %+v", err, again, r)
			_, _ = io.Copy(w, r.Body)
		})}
		var all sync.WaitGroup
		all.Go(func() { _, _ = io.Copy(io.Discard, near) })
		all.Go(func() {
			_, _ = near.Write(b)
			_ = near.Close()
		})
		err := s.Serve(context.Background(), far)
		require.Error(t, err)
		all.Wait()
		s.Stop(t.Context())
		if a, err := parseAnswer(string(b)); err == nil { //nolint:bodyclose // likewise
			again, err := parseAnswer(string(appendAnswer(nil, a.StatusCode, a.ContentLength, a.Header))) //nolint:bodyclose // likewise
			assert.True(t, err == nil && again.StatusCode == a.StatusCode && len(again.Header) == len(a.Header), "%v: got %+v of %+v", err, again, a)
		}
	})
}

// TestNothingBeginsBehindTheEnd: a request that was read while its connection ended is not handled, since nobody would end it.
func TestNothingBeginsBehindTheEnd(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = near.Close() }()
	s := &Server{StreamsMax: 9, Log: zerolog.Nop(), Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("handled") })}
	c := &served{server: s, link: newLink(far), values: t.Context()}
	c.link.close(io.ErrUnexpectedEOF)
	err := c.begin(head{stream: 1}, beginning(requestHeader(t), ""))
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	s.Stop(t.Context())
}

// TestABodyThatIsReadLateTakesNoMoreRoom: a reader that is always a little behind has read all of it at no time.
func TestABodyThatIsReadLateTakesNoMoreRoom(t *testing.T) {
	s := &stream{link: newLink(nil)}
	piece := make([]byte, pieceMax)
	for range window / 2 / pieceMax {
		require.NoError(t, s.deliver(piece, false))
	}
	for i := range 1000 {
		require.NoError(t, s.deliver([]byte{byte(i)}, false))
		require.NoError(t, s.deliver(piece[1:], false))
		_, err := io.ReadFull(readerOf(func(p []byte) (int, error) { return s.receive(t.Context(), p) }), make([]byte, pieceMax))
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, cap(s.in), 2*window, "bytes that are kept")
}

type readerOf func([]byte) (int, error)

func (r readerOf) Read(p []byte) (int, error) { return r(p) }
