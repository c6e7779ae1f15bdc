package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

// subject is an instance that a worker sends to.
type subject struct {
	id   string
	sent int // events so far
	// sure says that nobody else sends to it and that no event of ours got
	// lost, so its node is known.
	sure bool
}

// worker drives one connection. Everything in it belongs to its goroutine until that
// has ended.
type worker struct {
	options  *Options
	conn     connection
	script   *script
	random   *rand.Rand
	subjects []subject
	next     int // place in subjects
	tally    tally
}

func newWorker(o *Options, number int) *worker {
	return &worker{
		options: o,
		conn:    connection{addr: o.Addr},
		script:  newScript(o),
		random:  rand.New(rand.NewPCG(uint64(number), 0)),
	}
}

// prepare creates n instances and brings each to the history that was asked
// for. Any fault ends the run: nothing was measured yet.
func (w *worker) prepare(ctx context.Context, n int) error {
	if err := w.conn.dial(ctx); err != nil {
		return err
	}
	for range n {
		id, f := w.create()
		if f != nil {
			return fmt.Errorf("prepare: %w", f)
		}
		s := subject{id: id, sure: true}
		for range w.options.Preload {
			if f := w.send(&s); f != nil {
				return fmt.Errorf("prepare: %w", f)
			}
		}
		w.subjects = append(w.subjects, s)
	}
	return nil
}

// closedLoop sends one request after the other until the window is over.
func (w *worker) closedLoop(ctx context.Context, win window) error {
	for {
		begun := time.Now()
		if !begun.Before(win.end) {
			return nil
		}
		if err := w.once(ctx, win, begun); err != nil {
			return err
		}
	}
}

// openLoop sends one request for each time that comes from due: the moment when
// it should have left.
func (w *worker) openLoop(ctx context.Context, win window, due <-chan time.Time) error {
	for at := range due {
		if err := w.once(ctx, win, at); err != nil {
			return err
		}
	}
	return nil
}

// once sends one request and notes how it went, counted from begun. An error
// means that the worker cannot go on.
func (w *worker) once(ctx context.Context, win window, begun time.Time) error {
	kind := w.kind()
	f := w.request(kind)
	ended := time.Now()
	measured := win.counts(begun, ended)
	if f == nil {
		if measured {
			w.tally.answered.Record(ended.Sub(begun))
		}
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch {
	case measured && f.shed:
		w.tally.shed.Record(ended.Sub(begun))
	case measured:
		w.tally.failed(f.Error())
	}
	if f.broken {
		return w.conn.dial(ctx)
	}
	return nil
}

// kind is what is sent next.
func (w *worker) kind() Kind {
	mix := &w.options.Mix
	if mix[Create] == 0 && mix[Read] == 0 {
		return Event
	}
	return mix.pick(w.random.Uint64())
}

// request sends one request of a kind to the next subject.
func (w *worker) request(k Kind) *fault {
	if k == Create {
		_, f := w.create()
		return f
	}
	s := &w.subjects[w.next]
	if w.next++; w.next == len(w.subjects) {
		w.next = 0
	}
	if k == Read {
		return w.load(s)
	}
	return w.send(s)
}

// How answers begin. The servers that are measured write the members in the order
// of gateway/INTERFACE.md, "The record".
const (
	instanceHead = `{"workflowId":"` + WorkflowID + `","instanceId":"`
	recordHead   = `{"state":{"_id":"`
)

// create makes an instance and returns its id.
func (w *worker) create() (string, *fault) {
	body, f := w.ask(Create, w.script.create())
	if f != nil {
		return "", f
	}
	rest, ok := bytes.CutPrefix(body, []byte(instanceHead))
	id, _, closed := bytes.Cut(rest, []byte{'"'})
	if !ok || !closed || len(id) == 0 {
		return "", &fault{kind: Create, reason: "the answer names no instance"}
	}
	return string(id), nil
}

// send brings the subject on by one event.
func (w *worker) send(s *subject) *fault {
	m := &moves[s.sent%len(moves)]
	s.sent++
	body, f := w.ask(Event, w.script.event(s.id, m))
	if f == nil {
		f = check(Event, body, instanceHead, s, m.node)
	}
	if f != nil {
		s.sure = false // it may have happened, or may happen yet
	}
	return f
}

// load reads the subject.
func (w *worker) load(s *subject) *fault {
	body, f := w.ask(Read, w.script.read(s.id))
	if f != nil {
		return f
	}
	node := "draft"
	if s.sent > 0 {
		node = moves[(s.sent-1)%len(moves)].node
	}
	return check(Read, body, recordHead, s, node)
}

// check looks whether an answer is about the subject and shows it in the node.
func check(k Kind, body []byte, start string, s *subject, node string) *fault {
	rest, ok := bytes.CutPrefix(body, []byte(start))
	if !ok || !bytes.HasPrefix(rest, []byte(s.id)) || body[len(body)-1] != '}' {
		return &fault{kind: k, reason: "the answer is about something else"}
	}
	if s.sure && !bytes.Contains(body, []byte(`"nodeId":"`+node+`"`)) {
		return &fault{kind: k, reason: "the answer shows another node"}
	}
	return nil
}

// ask sends a request and returns the body of its answer.
func (w *worker) ask(k Kind, request []byte) ([]byte, *fault) {
	h, body, err := w.conn.exchange(request, time.Now())
	switch {
	case err != nil:
		return nil, transportFault(k, err)
	case h.status != 200 || h.closes:
		return nil, statusFault(k, h)
	}
	return body, nil
}

// fault is a request that was not answered as it should be.
type fault struct {
	kind   Kind
	reason string // repeats: it has neither ports nor ids
	shed   bool   // the server was too busy and did nothing
	broken bool   // the connection cannot be used again
}

func (f *fault) Error() string { return f.kind.String() + ": " + f.reason }

// statusFault is an answer other than 200, or one after which the server closes
// the connection, which no healthy server does.
func statusFault(k Kind, h head) *fault {
	f := &fault{kind: k, reason: fmt.Sprintf("status %d", h.status), shed: h.status == 503 || h.status == 429, broken: h.closes}
	if h.closes {
		f.reason += " and the connection closed"
	}
	return f
}

// transportFault is a request without an answer.
func transportFault(k Kind, cause error) *fault {
	reason := cause.Error()
	var op *net.OpError
	if errors.As(cause, &op) { // its text has ports
		reason = op.Op + ": " + op.Err.Error()
	}
	return &fault{kind: k, reason: "no answer: " + strings.TrimSpace(reason), broken: true}
}
