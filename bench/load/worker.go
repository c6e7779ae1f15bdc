package load

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"troupe/gateway/leader"
)

type subject struct {
	id string
	at *place // where it stands; nil or without steps: its walk is over
	// sure says that nobody else sends to it and that no event of ours got lost, so its node is known.
	sure bool
}

func (s *subject) over() bool { return s.at == nil || len(s.at.steps) == 0 }

// worker drives one connection. Everything in it belongs to its goroutine until that
// has ended, except for what has a mutex.
type worker struct {
	options  *Options
	conn     *connection   // that of the next request, or of the last one
	conns    []*connection // one to each node
	table    leader.Table
	script   *script
	random   *rand.Rand
	subjects []subject
	next     int           // place in subjects
	batch    []batched     // of the last batch
	wait     time.Duration // before the next attempt to connect; 0: none
	tally    tally
	gap      *gap
	// triesList and triesJobs say that these are tried before instances are created; one does for all.
	triesList, triesJobs bool
}

// exactConnectionsMax is the number of connections above which each keeps its histograms
// with two digits: with three they take 0.2 MB each.
const exactConnectionsMax = 256

// newWorker has what it shares with the others: the number of {{n}} and the gap.
func newWorker(o *Options, number int, count *atomic.Int64, g *gap) *worker {
	random := rand.New(rand.NewPCG(uint64(number), 0))
	w := &worker{
		options: o,
		conns:   connections(o),
		script:  newScript(o, content{random, count}),
		random:  random,
		gap:     g,

		triesList: number == 0 && o.Mix[Query] > 0,
		triesJobs: number == 0 && o.Mix[Job] > 0,
	}
	w.conn = w.conns[0]
	w.tally.shed.coarse = o.Connections > exactConnectionsMax
	for k := range kinds {
		w.tally.answered[k].coarse = w.tally.shed.coarse
	}
	return w
}

// prepare creates n instances and brings each to the history that was asked
// for. Any fault ends the run: nothing was measured yet.
func (w *worker) prepare(ctx context.Context, n int) error {
	for _, c := range w.conns {
		if err := c.dial(ctx); err != nil {
			return err
		}
	}
	if w.triesList {
		if f := patiently(ctx, w.list); f != nil {
			return prepareError(f, "query as "+w.userName(w.options.Scenario.creator))
		}
	}
	if w.triesJobs {
		if f := patiently(ctx, func() *fault { return w.doJobs(1, "PT0S").fault }); f != nil {
			return prepareError(f, "jobs as "+w.userName(w.options.Scenario.work.user))
		}
	}
	for range n {
		var s subject
		w.aim("")
		f := patiently(ctx, func() (f *fault) {
			s, f = w.create()
			return f
		})
		if f != nil {
			return prepareError(f, "create as "+w.userName(w.options.Scenario.creator))
		}
		if s.over() && !w.options.Scenario.Works() {
			return errNoStart
		}
		for range w.options.Preload {
			if s.over() {
				break
			}
			w.aim(s.id)
			t, from := s.at.pick(w.random), s.at.node
			if f := w.send(&s, t); f != nil {
				return prepareError(f, fmt.Sprintf("event %s in node %s as %s, instance %s", t.event, from, w.userName(t.user), s.id))
			}
		}
		w.subjects = append(w.subjects, s)
	}
	return nil
}

// patiently asks until the server is not too busy: many connections may be more than it takes. It ends with ctx.
func patiently(ctx context.Context, ask func() *fault) *fault {
	f := ask()
	for f != nil && f.shed && !f.broken && ctx.Err() == nil {
		Sleep(ctx, redialWaitMin)
		f = ask()
	}
	return f
}

func (w *worker) userName(i int) string { return w.options.Scenario.Users[i].Name }

// errNoStart ends a run before it begins.
var errNoStart = errors.New("prepare: a new instance stands in no node from which the scenario has a step")

func (w *worker) closedLoop(ctx context.Context, win window) error {
	for {
		begun := time.Now()
		if !begun.Before(win.end) {
			return nil
		}
		if err := w.once(ctx, win, begun); err != nil {
			return endOf(err)
		}
	}
}

// openLoop sends one request for each time that comes from due: the moment when it should have left.
func (w *worker) openLoop(ctx context.Context, win window, due <-chan time.Time) error {
	for at := range due {
		if err := w.once(ctx, win, at); err != nil {
			return endOf(err)
		}
	}
	return nil
}

// errOver ends a loop without a fault: the window ended while the server was not there.
var errOver = errors.New("the window is over")

func endOf(err error) error {
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// once sends one request and notes how it went, counted from begun. An error means that the worker cannot go on.
func (w *worker) once(ctx context.Context, win window, begun time.Time) error {
	k := w.kind()
	w.aim(w.about(k))
	if err := w.rested(ctx, win, begun); err != nil {
		return err
	}
	s := w.request(k)
	ended := time.Now()
	if s.fault != nil && ctx.Err() != nil { // it was cut
		if !ended.Before(win.end) {
			w.tally.record(&sent{fault: &fault{kind: s.kind, reason: "no answer yet when the run was interrupted", count: s.fault.count}}, 0, part{})
		}
		return ctx.Err()
	}
	if s.operations > 0 {
		w.gap.answered(ended)
		w.wait = 0
	}
	// NB: a request of a closed loop that has no answer at all follows the window.
	never := s.fault != nil && s.fault.broken && s.fault.status == 0 && !ended.Before(win.end)
	if p := win.part(begun, ended); p.due || p.came || never {
		w.tally.record(&s, ended.Sub(begun), p)
	}
	switch f := s.fault; {
	case f != nil && f.broken:
		return w.redial(ctx, win)
	case f != nil && f.shed && w.options.Heed:
		Sleep(ctx, min(time.Duration(f.retry)*time.Second, max(0, time.Until(win.end))))
		return ctx.Err()
	}
	return nil
}

func (w *worker) kind() Kind {
	mix := &w.options.Mix
	if mix[Create] == 0 && mix[Read] == 0 && mix[Query] == 0 && mix[Job] == 0 {
		return Event
	}
	return mix.pick(w.random.Float64())
}

func (w *worker) request(k Kind) sent {
	switch {
	case k == Create:
		_, f := w.create()
		return sentOne(k, f)
	case k == Query:
		return sentOne(k, w.list())
	case k == Job:
		return w.doJobs(cmp.Or(w.options.Batch, JobsDefault), "PT1S")
	case k == Event && w.options.Batch > 0:
		return w.sendBatch(w.options.Batch)
	}
	s := w.nextSubject()
	switch {
	case k == Read:
		return sentOne(k, w.load(s))
	case s.over(): // the walk goes on with a new instance
		fresh, f := w.create()
		if f == nil {
			*s = fresh
		}
		return sentOne(Create, f)
	}
	return sentOne(k, w.send(s, s.at.pick(w.random)))
}

func (w *worker) nextSubject() *subject {
	s := &w.subjects[w.next]
	if w.next++; w.next == len(w.subjects) {
		w.next = 0
	}
	return s
}

func (w *worker) create() (subject, *fault) {
	body, f := w.ask(Create, w.script.create())
	if f != nil {
		return subject{}, f
	}
	rest, ok := w.cutInstance(body)
	id, _, closed := bytes.Cut(rest, []byte{'"'})
	if !ok || !closed || len(id) == 0 {
		return subject{}, &fault{kind: Create, reason: "the answer names no instance"}
	}
	return subject{id: string(id), at: w.options.Scenario.whereIn(body), sure: true}, nil
}

// cutInstance cuts the begin of an answer, up to the id of the instance. The servers that
// are measured write the members in the order of gateway/INTERFACE.md, "The record".
func (w *worker) cutInstance(body []byte) (rest []byte, ok bool) {
	body, ok = bytes.CutPrefix(body, []byte(`{"workflowId":"`))
	if !ok {
		return nil, false
	}
	if body, ok = bytes.CutPrefix(body, []byte(w.options.Scenario.WorkflowID)); !ok {
		return nil, false
	}
	return bytes.CutPrefix(body, []byte(`","instanceId":"`))
}

func (w *worker) send(s *subject, t *step) *fault {
	before := s.at
	s.at = t.to
	body, f := w.ask(Event, w.script.event(s.id, t))
	if f == nil {
		rest, ok := w.cutInstance(body)
		f = check(Event, rest, ok, s)
	}
	switch {
	case f != nil && f.shed:
		s.at = before // nothing was done
	case f != nil:
		s.sure = false // it may have happened, or may happen yet
	case t.to == nil:
		s.at = w.options.Scenario.whereIn(body)
	}
	return f
}

func (w *worker) load(s *subject) *fault {
	body, f := w.ask(Read, w.script.read(s.id))
	if f != nil {
		return f
	}
	rest, ok := bytes.CutPrefix(body, []byte(`{"state":{"_id":"`))
	return check(Read, rest, ok, s)
}

func (w *worker) list() *fault {
	body, f := w.ask(Query, w.script.query())
	if f == nil && (!bytes.HasPrefix(body, []byte(`{"instances":[`)) || body[len(body)-1] != '}') {
		f = &fault{kind: Query, reason: "the answer is not a list"}
	}
	return f
}

// check looks whether an answer, of which rest begins with the id, is about the subject and shows it where it must be.
func check(k Kind, rest []byte, ok bool, s *subject) *fault {
	if !ok || !bytes.HasPrefix(rest, []byte(s.id)) || rest[len(rest)-1] != '}' {
		return &fault{kind: k, reason: "the answer is about something else"}
	}
	if s.sure && s.at != nil && !bytes.Contains(rest, s.at.shown) {
		return &fault{kind: k, reason: fmt.Sprintf("the answer shows the node %s, not %s", nodesIn(rest), s.at.node)}
	}
	return nil
}

func (w *worker) ask(k Kind, request []byte) ([]byte, *fault) {
	h, body, err := w.conn.exchange(request, time.Now())
	switch {
	case err != nil:
		return nil, transportFault(k, err)
	case h.status != 200 || h.closes:
		return nil, statusFault(k, h, body)
	}
	w.learn(h.leader)
	return body, nil
}

type batched struct {
	subject *subject
	before  *place // where the subject stood
	became  became
}

type became int

const (
	unknown became = iota // it may have happened, or may happen yet
	done
	refused // the server was too busy and did nothing
)

// sendBatch brings n subjects on by one event each, in one request. Some may fail
// while others do not: the fault is then the first one's reason and the number of all.
// Those that were refused are counted apart, and stay where they were.
func (w *worker) sendBatch(n int) sent {
	w.batch = w.batch[:0]
	w.script.beginBatch()
	user := 0
	for range n {
		s := w.nextSubject()
		t := s.at.pick(w.random)
		w.script.addToBatch(s.id, t)
		w.batch = append(w.batch, batched{subject: s, before: s.at})
		s.at, user = t.to, t.user
	}
	s := w.askBatch(user)
	for i := n - 1; i >= 0; i-- { // the last first: a subject may be there twice
		switch b := &w.batch[i]; b.became {
		case refused:
			b.subject.at = b.before
		case unknown:
			b.subject.sure = false
		}
	}
	return s
}

func (w *worker) askBatch(user int) sent {
	body, f := w.ask(Event, w.script.endBatch(user))
	switch {
	case f == nil:
		return readBatch(body, w.batch)
	case f.shed:
		for i := range w.batch {
			w.batch[i].became = refused
		}
		return sent{kind: Event, shed: int64(len(w.batch)), fault: f}
	}
	f.count = int64(len(w.batch))
	return sent{kind: Event, fault: f}
}

var (
	resultsHead = []byte(`{"results":[`)
	resultHead  = []byte(`{"status":`)
	instanceKey = []byte(`"instanceId":"`)
)

// readBatch reads the results, one for each event and in their order
// (gateway/openapi.yaml, sendBatch), and notes what happened to each.
func readBatch(body []byte, batch []batched) sent {
	s := sent{kind: Event}
	fail := func(count int, reason string) sent {
		if s.fault == nil {
			s.fault = &fault{kind: Event, reason: reason}
		}
		s.fault.count += int64(count)
		return s
	}
	rest, ok := bytes.CutPrefix(body, resultsHead)
	if !ok {
		return fail(len(batch), "the answer has no results")
	}
	for i := range batch {
		_, after, found := bytes.Cut(rest, resultHead)
		if !found || len(after) < 4 {
			return fail(len(batch)-i, "the answer has too few results")
		}
		rest = after
		status, err := strconv.Atoi(string(after[:3]))
		switch {
		case err != nil:
			return fail(len(batch)-i, "the answer has a result without a status")
		case status == 200:
			if _, after, found = bytes.Cut(rest, instanceKey); !found || !bytes.HasPrefix(after, []byte(batch[i].subject.id)) {
				return fail(len(batch)-i, "a result is about something else")
			}
			rest = after
			batch[i].became = done
			s.operations++
		case IsShed(status):
			batch[i].became = refused
			s.shed++
		default:
			fail(1, fmt.Sprintf("status %d in a batch", status))
		}
	}
	if bytes.Contains(rest, resultHead) {
		return fail(1, "the answer has too many results")
	}
	return s
}
