package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"troupe/gateway/api"
)

// WatchRequest asks for what is committed from now on.
type WatchRequest struct {
	WorkflowID string
	// InstanceID is the one instance to watch; empty: all of the workflow that the caller may read.
	InstanceID string
	Filter     string // the JSON of a filter; empty matches all
	// LastEventID is Notice.ID of the last notice that was handled; the watch
	// goes on behind it. Empty: with what comes next.
	LastEventID string
	// Opened, if not nil, is called each time the stream begins, with the place where it does.
	Opened func(id string)
	// Broken, if not nil, is called each time the stream has ended, with the
	// reason and the time until it is opened again.
	Broken func(err error, wait time.Duration)
}

// Notice is one thing that a watch tells.
type Notice struct {
	ID    string       // the place in the stream, for WatchRequest.LastEventID
	Entry *api.Watched // a committed history entry; nil when this notice is about a loss
	// Lost, when Entry is nil, says why entries are missing before this place:
	// the caller was too slow or away for too long. Load what matters again.
	Lost string
	Raw  json.RawMessage // the data as it came
}

// Watch yields what is committed, in the order of the commits for each instance, until ctx ends or the caller stops.
// When the connection breaks or the service restarts, it connects again and goes on behind the last notice, waiting as
// long as the service asks for, and longer each time that fails.
//
// An error is the last thing it yields: the context's; an *Error when the service refuses, also later, for example
// because the token was revoked; ErrProtocol; and the network's, when not even the first connection could be made
// within Options.RetryMax repetitions.
//
// The stream is read while the caller handles notices, not ahead: a caller who is slow for long gets a notice of loss.
func (c *Client) Watch(ctx context.Context, r WatchRequest) iter.Seq2[*Notice, error] {
	return func(yield func(*Notice, error) bool) {
		w := watcher{client: c, request: r, retry: c.options.RetryWait, yield: yield}
		if err := w.run(ctx); err != nil && !w.left {
			yield(nil, fmt.Errorf("watch %s: %w", Printable(w.subject()), err))
		}
	}
}

type watcher struct {
	client  *Client
	request WatchRequest // LastEventID moves on
	yield   func(*Notice, error) bool

	retry    time.Duration // first wait after a break
	opened   bool          // the stream was open once
	failures int           // attempts since it was open last
	at       int           // which node is asked
	left     bool          // the caller wants no more
}

func (w *watcher) subject() string {
	if w.request.InstanceID == "" {
		return w.request.WorkflowID
	}
	return w.request.WorkflowID + "/" + w.request.InstanceID
}

// run opens the stream again and again. It returns nil when the caller stops.
func (w *watcher) run(ctx context.Context) error {
	if err := checkWorkflow(w.request.WorkflowID); err != nil {
		return err
	}
	if w.request.InstanceID != "" {
		if err := checkInstance(w.request.WorkflowID, w.request.InstanceID); err != nil {
			return err
		}
	}
	w.at = w.client.nodes.pick(w.request.InstanceID, nobody)
	for {
		err := w.stream(ctx)
		if w.left {
			return nil
		}
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		if final(err) && (!hopeless(err) || w.client.nodes.others() == 0) || !w.opened && w.failures >= w.client.options.RetryMax {
			return err
		}
		if refused := (*Error)(nil); !errors.As(err, &refused) && !errors.Is(err, errEnded) {
			w.at = w.client.nodes.replace(w.at, w.request.InstanceID)
		}
		wait := w.client.backoff(min(w.retry, w.client.options.RetryWaitMax), w.failures)
		if refused := (*Error)(nil); errors.As(err, &refused) {
			wait = max(wait, min(refused.RetryAfter, w.client.options.RetryWaitMax))
		}
		wait = spread(wait)
		w.failures++
		if w.request.Broken != nil {
			w.request.Broken(err, wait)
		}
		if err := w.client.pause(ctx, wait); err != nil {
			return err
		}
	}
}

// final reports whether opening the stream again would not help.
func final(err error) bool {
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return refused.Status < 500 && refused.Status != http.StatusTooManyRequests
	}
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrProtocol) || hopeless(err)
}

var (
	errEnded  = errors.New("the stream has ended")
	errSilent = errors.New("the stream has gone silent")
)

// stream opens the stream once and hands on what it brings. It never returns nil.
func (w *watcher) stream(ctx context.Context) error {
	c := w.client
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // what is left of the stream is not wanted
	// What comes is watched by a timer, not by a deadline, because a connection may be shared.
	alarm := time.AfterFunc(c.options.SilenceMax, func() { cancel(errSilent) })
	defer alarm.Stop()
	in := newStreamReader(&heard{body, alarm, c.options.SilenceMax}, c.options.EventBytesMax)
	in.id = w.request.LastEventID
	for first := true; ; first = false {
		b, err := in.next()
		switch {
		case errors.Is(err, ErrProtocol):
			return err
		case errors.Is(context.Cause(ctx), errSilent):
			return errSilent
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF): // the latter when a chunk was cut
			return errEnded
		case err != nil:
			return c.broken(w.at, err)
		}
		alarm.Stop() // the caller may take its time
		if b.retry >= 0 {
			w.retry = max(b.retry, w.client.options.RetryWait)
		}
		w.request.LastEventID = b.id
		w.opened, w.failures = true, 0
		if first && w.request.Opened != nil {
			w.request.Opened(w.request.LastEventID)
		}
		if err := w.deliver(&b); err != nil {
			return err
		}
	}
}

// open sends the request and returns the body of a stream.
func (w *watcher) open(ctx context.Context) (io.ReadCloser, error) {
	c, path, q := w.client, []string{"watch", w.request.WorkflowID}, url.Values{}
	if w.request.InstanceID != "" {
		path = append(path, w.request.InstanceID)
	}
	setUnlessZero(q, "filter", w.request.Filter)
	if strings.IndexFunc(w.request.LastEventID, unicode.IsControl) >= 0 {
		return nil, invalid("the last event id holds control characters")
	}
	out, err := c.newRequest(ctx, w.at, &request{method: http.MethodGet, path: path, query: q})
	if err != nil {
		return nil, err
	}
	out.Header.Set("Accept", "text/event-stream")
	out.Header.Set("Accept-Encoding", "identity") // a packed stream may be held back
	if w.request.LastEventID != "" {
		out.Header.Set("Last-Event-ID", w.request.LastEventID)
	}
	in, err := c.stream.Do(out)
	if err != nil {
		return nil, c.broken(w.at, err)
	}
	if in.StatusCode != http.StatusOK {
		defer func() { _ = in.Body.Close() }()
		return nil, readError(in)
	}
	if kind, _, err := mime.ParseMediaType(in.Header.Get("Content-Type")); err != nil || kind != "text/event-stream" {
		_ = in.Body.Close()
		return nil, fmt.Errorf("%w: no event stream", ErrProtocol)
	}
	return in.Body, nil
}

// deliver hands a block to the caller. Kinds that are not known yet are passed over.
func (w *watcher) deliver(b *block) error {
	if b.data == nil {
		return nil
	}
	n := &Notice{ID: b.id, Raw: bytes.Clone(b.data)}
	var err error
	switch b.kind {
	case api.WatchEntry:
		n.Entry = new(api.Watched)
		err = decode(n.Raw, n.Entry)
	case api.WatchLost:
		var lost api.Lost
		err = decode(n.Raw, &lost)
		n.Lost = lost.Message
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if !w.yield(n, nil) {
		w.left = true
		return errEnded
	}
	return nil
}

// heard reads a stream and gives it time again with each read.
type heard struct {
	in    io.Reader
	alarm *time.Timer
	most  time.Duration
}

func (h *heard) Read(p []byte) (int, error) {
	h.alarm.Reset(h.most)
	return h.in.Read(p)
}

// block is what stands in a stream of server-sent events between two blank lines (HTML, 9.2.6).
type block struct {
	kind string // the field event; empty when there was none
	// data is the lines of the field data, joined; nil when there was none. The
	// bytes are valid until the next block is read.
	data  []byte
	id    string        // the last id of the stream so far, kept from block to block
	retry time.Duration // the field retry; negative when there was none
}

// streamReader reads a stream of server-sent events as the service writes them: in UTF-8, with LF or CRLF at the end of a
// line. One goroutine may use it.
type streamReader struct {
	in       *bufio.Scanner
	bytesMax int // of a line, and of the data of one block
	data     []byte
	id       string // of the last whole block
}

func newStreamReader(in io.Reader, bytesMax int) *streamReader {
	s := &streamReader{in: bufio.NewScanner(in), bytesMax: bytesMax}
	s.in.Buffer(nil, bytesMax+len("\n"))
	return s
}

// errTooLong is wrapped when a line or the data of a block exceeds bytesMax.
var errTooLong = fmt.Errorf("%w: the stream has an event or a line that is too long", ErrProtocol)

// next returns the next block that says something; comments do not. At the end of the stream it returns io.EOF, and a
// block that has not ended by then is not delivered.
func (s *streamReader) next() (block, error) {
	b := block{id: s.id, retry: -1}
	s.data = s.data[:0]
	said, hasData := false, false
	for s.in.Scan() {
		line := s.in.Bytes()
		if len(line) == 0 {
			if !said {
				continue
			}
			if hasData {
				b.data = s.data[:len(s.data)-1] // without the last line's end
			}
			s.id = b.id
			return b, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if len(s.data)+len(value)+1 > s.bytesMax {
				return block{}, errTooLong
			}
			s.data = append(append(s.data, value...), '\n')
			said, hasData = true, true
		case "event":
			b.kind, said = string(value), true
		case "id":
			if bytes.IndexFunc(value, unicode.IsControl) < 0 { // no header could give it back
				b.id, said = string(value), true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 32); err == nil {
				b.retry, said = time.Duration(ms)*time.Millisecond, true
			}
		}
	}
	switch err := s.in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return block{}, errTooLong
	case err != nil:
		return block{}, err
	}
	return block{}, io.EOF
}
