package instances

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/toll"
	"troupe/statemachine/data"
)

const (
	BatchItemsMax = 10_000
	BatchBytesMax = 16 << 20
)

// itemSource has the items of a batch. It belongs to the goroutine of the request.
type itemSource struct {
	items  []data.Value // that were read, of an array or of lines with a key
	lines  []byte       // that were read of a stream, each with its end
	line   int          // how many lines were cut off
	chunks <-chan chunk // chunks gives more lines; nil when there are no more to come
	err    error        // why nothing follows items and lines: io.EOF when that is all
	whole  bool         // the body was read to its end
	stop   func()       // stop ends the reading of a stream; nil without one
}

// chunk is a piece of a stream of whole lines. It is valid until the next one is taken.
type chunk struct {
	lines []byte
	err   error // why it is the last; nil when it is not
}

// next returns the next item that is at hand. Its bytes are nobody else's.
func (s *itemSource) next() (data.Value, bool) {
	if len(s.items) > 0 {
		item := s.items[0]
		s.items = s.items[1:]
		return data.Value(slices.Clone(item)), true // NB: whoever keeps a part of it must not keep the whole batch
	}
	for len(s.lines) > 0 {
		var line []byte
		line, s.lines = cutLine(s.lines)
		s.line++
		if line == nil {
			continue
		}
		item, err := s.clean(slices.Clone(line))
		if err != nil {
			s.fail(err)
			return nil, false
		}
		return item, true
	}
	return nil, false
}

// cutLine cuts the first line off; nil when it is blank.
func cutLine(text []byte) (line, rest []byte) {
	line = text
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		line, rest = text[:end], text[end+1:]
	}
	if line = bytes.TrimSpace(line); len(line) == 0 {
		line = nil
	}
	return line, rest
}

// clean makes an item of the line that was cut off last.
func (s *itemSource) clean(line []byte) (data.Value, error) {
	item, err := data.Clean(line)
	if err != nil {
		return nil, parse.Malformed("line %d is %v", s.line, err)
	}
	return item, nil
}

// atHand reports whether there may be a next item.
func (s *itemSource) atHand() bool { return len(s.items) > 0 || len(s.lines) > 0 }

// ended reports whether no item is at hand and none will come.
func (s *itemSource) ended() bool { return s.err != nil && len(s.items) == 0 && len(s.lines) == 0 }

// fail ends the items, whatever was read. The first error counts; io.EOF is none.
func (s *itemSource) fail(err error) {
	s.items, s.lines, s.chunks = nil, nil, nil
	if s.err == nil || errors.Is(s.err, io.EOF) {
		s.err = err
	}
}

// add takes a chunk over. The caller must still have a right to send what is in it.
func (s *itemSource) add(x *kernel.Exchange, c chunk) {
	s.lines = c.lines
	if c.err != nil {
		s.err, s.chunks = c.err, nil
		s.whole = errors.Is(c.err, io.EOF)
	}
	now, err := x.Identify(x.Kind)
	if err != nil {
		s.fail(err)
		return
	}
	x.Caller = now
}

func (s *itemSource) close() {
	if s.stop != nil {
		s.stop()
	}
}

// fingerprint is the same for batches with the same items.
func (s *itemSource) fingerprint(x *kernel.Exchange) [32]byte {
	h := sha256.New()
	_, _ = io.WriteString(h, x.Request.Method+" "+x.Route.Name+"\n") // a hash takes everything
	for _, item := range s.items {
		_, _ = h.Write(item)
		_, _ = h.Write([]byte{'\n'})
	}
	return [32]byte(h.Sum(nil))
}

// ReadBody reads the body of a request with many items to its end. Until ReleaseBody its bytes count towards what such
// bodies may take of the memory.
func (g *Group) ReadBody(x *kernel.Exchange) ([]byte, error) {
	body := &countedBody{keep: func(size int64) error { return g.keepBody(x, size) }, r: x.Request.Body}
	r := *x.Request
	r.Body = body
	text, err := kernel.ReadBody(x.Writer, &r, BatchBytesMax, x.Pay)
	if err == nil && x.Connection != nil {
		x.Connection.BodyRead()
	}
	return text, err
}

// readItems reads a batch to its end. Nothing is left to be found wrong but in its items.
func (g *Group) readItems(x *kernel.Exchange, lines bool) (*itemSource, error) {
	text, err := g.ReadBody(x)
	if err != nil {
		return nil, err
	}
	s := &itemSource{err: io.EOF}
	for lines && len(text) > 0 && len(s.items) <= BatchItemsMax {
		var line []byte
		line, text = cutLine(text)
		s.line++
		if line == nil {
			continue
		}
		item, err := s.clean(line)
		if err != nil {
			return nil, err
		}
		s.items = append(s.items, item)
	}
	if !lines {
		if s.items, err = data.CleanArray(text, BatchItemsMax+1); err != nil {
			return nil, parse.Malformed("the body is %v", err)
		}
	}
	if len(s.items) > BatchItemsMax {
		return nil, failure.Refuse(failure.ErrTooLarge, "a batch must not have more than %d items", BatchItemsMax)
	}
	return s, nil
}

// countedBody counts what is read beyond the largest body of one item towards what batches may take of the memory.
type countedBody struct {
	keep func(size int64) error
	r    io.ReadCloser
	read int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.read += int64(n)
	if kept := b.keep(b.read); kept != nil {
		return n, kept
	}
	return n, err
}

func (b *countedBody) Close() error { return b.r.Close() }

// keepBody counts the bytes of a batch's body that are in memory: failure.ErrBusy when
// those of all or of the caller are too many.
func (g *Group) keepBody(x *kernel.Exchange, size int64) error {
	more := size - x.Kernel.Options.BodyBytesMax - x.BodyKept
	if more <= 0 {
		return nil
	}
	x.BodyKept += more
	ofUser, ofAll := x.Usage.BatchBytes.Add(more), g.Shares.Bytes.Add(more)
	if ofUser > BatchBodiesMax/2 || ofAll > BatchBodiesMax {
		return x.RejectOverload()
	}
	return nil
}

// keepLines is keepBody for lines that come while others are carried out. All of their bytes count: a stream of lines may
// wait for long, and there may be more of them than requests are worked on.
func (g *Group) keepLines(x *kernel.Exchange, size int) error {
	return g.keepBody(x, int64(size)+x.Kernel.Options.BodyBytesMax)
}

// ReleaseBody is the end of ReadBody, keepBody and keepLines.
func (g *Group) ReleaseBody(x *kernel.Exchange) {
	x.Usage.BatchBytes.Add(-x.BodyKept)
	g.Shares.Bytes.Add(-x.BodyKept)
	x.BodyKept = 0
}

// BatchBodiesMax bounds the bodies of all batches, as far as they are larger than those
// of other requests, and all lines that are in memory; half of it is for one user.
const BatchBodiesMax = 256 << 20

// LineBytes is what is set aside for lines at first.
const LineBytes = 32 << 10

// streamItems reads lines while the batch is carried out, and answers go out while lines come in.
func (g *Group) streamItems(x *kernel.Exchange) *itemSource {
	// NB: what is left of a body after a read that had a deadline, net/http would take for the next request.
	if x.Request.ProtoMajor < 2 {
		x.Writer.Header()["Connection"] = kernel.ValueClose
	}
	control := http.NewResponseController(x.Writer)
	_ = control.EnableFullDuplex() // where it is not supported, x.Writer is a test's
	chunks, stopped, done := make(chan chunk), make(chan struct{}), make(chan struct{})
	reader := &lineReader{x: x, keep: func(size int) error { return g.keepLines(x, size) }, control: control, body: x.Request.Body, stopped: stopped}
	go func() {
		defer close(done)
		for {
			c := reader.read()
			select {
			case chunks <- c:
			case <-stopped:
				return
			}
			if c.err != nil {
				return
			}
		}
	}()
	s := &itemSource{chunks: chunks}
	s.stop = func() {
		close(stopped)
		if s.whole {
			<-done
			if x.Connection != nil {
				x.Connection.BodyRead()
			}
			return
		}
		// NB: a read that waits would hold up net/http behind the handler. And a connection that is closed before all
		// was read is reset: a caller who is still sending would not see the last line.
		_ = control.SetReadDeadline(time.Now().Add(lingerMax))
		<-done
		_ = control.SetReadDeadline(time.Now().Add(lingerMax)) // the reader may have set its own meanwhile
		_, _ = io.Copy(io.Discard, x.Request.Body)
	}
	return s
}

// lingerMax is how long lines are read that nobody wants any more.
const lingerMax = 500 * time.Millisecond

// lineReader reads whole lines. It belongs to the goroutine of streamItems, but for what two chunks alternate in.
type lineReader struct {
	x       *kernel.Exchange
	keep    func(size int) error
	control *http.ResponseController
	body    io.Reader
	stopped <-chan struct{} // nobody wants lines any more
	buffers [2][]byte
	turn    int
	rest    []byte // of the last read: a line without its end
	total   int
	paid    int // of total
}

// read waits for lines, and returns as many as there are.
func (l *lineReader) read() chunk {
	buffer := append(l.buffers[l.turn][:0], l.rest...)
	if cap(buffer) == 0 {
		buffer = make([]byte, 0, LineBytes)
	}
	for {
		if len(buffer) == cap(buffer) {
			buffer = slices.Grow(buffer, cap(buffer))
		}
		if err := l.keep(cap(buffer) + cap(l.buffers[1-l.turn])); err != nil {
			return chunk{err: err}
		}
		_ = l.control.SetReadDeadline(time.Now().Add(l.x.Kernel.Options.ReadMax))
		select {
		case <-l.stopped: // NB: after the deadline, which may stand in place of that of stop
			return chunk{err: io.ErrUnexpectedEOF}
		default:
		}
		before := len(buffer)
		n, err := l.body.Read(buffer[before:cap(buffer)])
		buffer = buffer[:before+n]
		if l.total += n; !l.pay() {
			return chunk{err: io.ErrUnexpectedEOF}
		}
		whole := 0
		// NB: no line ends in what was there before; to look there after each byte of a long
		// line would take a processor from others.
		if end := bytes.LastIndexByte(buffer[before:], '\n'); end >= 0 {
			whole = before + end + 1
		}
		switch {
		case l.total > BatchBytesMax:
			over := l.total - BatchBytesMax
			whole = bytes.LastIndexByte(buffer[:max(0, len(buffer)-over)], '\n') + 1
			err = failure.Refuse(failure.ErrTooLarge, "a batch must not be larger than %d bytes", BatchBytesMax)
		case errors.Is(err, io.EOF):
			whole = len(buffer) // the last line needs no end
		case err != nil:
			err = parse.Malformed("the body cannot be read to its end")
		case whole == 0:
			continue
		}
		l.buffers[l.turn] = buffer
		l.turn = 1 - l.turn
		l.rest = buffer[whole:]
		return chunk{buffer[:whole], err}
	}
}

// pay charges what was read, and waits until what was charged before is paid. It reports false when nobody wants lines
// any more.
func (l *lineReader) pay() bool {
	for n := l.total - kernel.BodyFirstBytes - l.paid; n > 0; {
		wait, ok := l.x.Charge(int64(n))
		if ok {
			l.paid += n
			n = 0
		}
		if wait == 0 {
			continue
		}
		timer := time.NewTimer(min(wait, toll.WaitMax))
		select {
		case <-timer.C:
		case <-l.stopped:
			timer.Stop()
			return false
		}
	}
	return true
}
