package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
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

// worker drives one connection. Everything in it but done belongs to its
// goroutine until that has ended.
type worker struct {
	options  *Options
	conn     connection
	script   *script
	random   *rand.Rand
	subjects []subject
	next     int // place in subjects
	tally    tally

	// done counts the answers, for the progress line.
	done atomic.Int64
}

func newWorker(o *Options, number int) *worker {
	return &worker{
		options: o,
		conn:    connection{addr: o.Addr, waitMax: o.AnswerWaitMax},
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
		id, fault := w.create()
		if fault != nil {
			return fmt.Errorf("prepare: %w", fault)
		}
		s := subject{id: id, sure: true}
		for range w.options.Preload {
			if fault := w.send(&s); fault != nil {
				return fmt.Errorf("prepare: %w", fault)
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
	fault := w.request(kind)
	w.done.Add(1)
	ended := time.Now()
	measured := win.counts(begun, ended)
	if fault == nil {
		if measured {
			w.tally.answered(kind, ended.Sub(begun))
		}
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var status statusFault
	shed := errors.As(fault, &status) && status.isShed()
	switch {
	case measured && shed:
		w.tally.refused(ended.Sub(begun))
	case measured:
		w.tally.failed(fault)
	}
	var transport transportFault
	if status.closes || errors.As(fault, &transport) {
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
func (w *worker) request(k Kind) error {
	if k == Create {
		_, fault := w.create()
		return fault
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
func (w *worker) create() (string, error) {
	body, fault := w.ask(Create, w.script.create())
	if fault != nil {
		return "", fault
	}
	rest, ok := bytes.CutPrefix(body, []byte(instanceHead))
	id, _, closed := bytes.Cut(rest, []byte{'"'})
	if !ok || !closed || len(id) == 0 {
		return "", bodyFault{Create, "names no instance"}
	}
	return string(id), nil
}

// send brings the subject on by one event.
func (w *worker) send(s *subject) error {
	m := &moves[s.sent%len(moves)]
	s.sent++
	body, fault := w.ask(Event, w.script.event(s.id, m))
	if fault == nil {
		fault = w.check(Event, body, instanceHead, s, m.node)
	}
	if fault != nil {
		s.sure = false // it may have happened, or may happen yet
	}
	return fault
}

// load reads the subject.
func (w *worker) load(s *subject) error {
	body, fault := w.ask(Read, w.script.read(w.options.BasePath, s.id))
	if fault != nil {
		return fault
	}
	node := "draft"
	if s.sent > 0 {
		node = moves[(s.sent-1)%len(moves)].node
	}
	return w.check(Read, body, recordHead, s, node)
}

// check looks whether an answer is about the subject and shows it in the node.
func (w *worker) check(k Kind, body []byte, start string, s *subject, node string) error {
	rest, ok := bytes.CutPrefix(body, []byte(start))
	if !ok || !bytes.HasPrefix(rest, []byte(s.id)) || body[len(body)-1] != '}' {
		return bodyFault{k, "is about something else"}
	}
	if s.sure && !bytes.Contains(body, []byte(`"nodeId":"`+node+`"`)) {
		return bodyFault{k, "shows another node"}
	}
	return nil
}

// ask sends a request and returns the body of its answer.
func (w *worker) ask(k Kind, request []byte) ([]byte, error) {
	h, body, err := w.conn.exchange(request, time.Now())
	switch {
	case err != nil:
		return nil, transportFault{k, err}
	case h.status != 200 || h.closes:
		return nil, statusFault{kind: k, code: h.status, closes: h.closes}
	}
	return body, nil
}

// statusFault is an answer other than 200, or one after which the server closes
// the connection, which no healthy server does.
type statusFault struct {
	kind   Kind
	code   int
	closes bool
}

func (f statusFault) Error() string {
	if f.closes {
		return fmt.Sprintf("%s: status %d and the connection closed", f.kind, f.code)
	}
	return fmt.Sprintf("%s: status %d", f.kind, f.code)
}

// isShed says that the server was too busy and did nothing.
func (f statusFault) isShed() bool { return f.code == 503 || f.code == 429 }

// bodyFault is an answer with a wrong body.
type bodyFault struct {
	kind   Kind
	reason string
}

func (f bodyFault) Error() string { return f.kind.String() + ": the answer " + f.reason }

// transportFault is a request without an answer.
type transportFault struct {
	kind  Kind
	cause error
}

func (f transportFault) Error() string {
	reason := f.cause.Error()
	var op *net.OpError
	if errors.As(f.cause, &op) { // its text has ports, and would never repeat
		reason = op.Op + ": " + op.Err.Error()
	}
	return f.kind.String() + ": no answer: " + strings.TrimSpace(reason)
}

func (f transportFault) Unwrap() error { return f.cause }
