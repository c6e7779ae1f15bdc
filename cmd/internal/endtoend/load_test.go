package endtoend

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	"troupe/gateway/wiretest"
)

// loadFlow counts its events, so that a record which does not belong to its
// history shows. An event's name holds the key of its request, and with it the
// history says which requests were applied, where and how often.
const loadFlow = `
id: load
context: {svcPublic: {count: 0}}
actions: {count: [{assign: {svcPublic.count: '${svcPublic.count + 1}'}}]}
stateMachines:
  ring:
    initial: a
    states:
      a: {on: {e.*: {target: b, actions: count}}}
      b: {on: {e.*: {target: c, actions: count}}}
      c: {on: {e.*: {target: a, actions: count}}}
`

// link is one keep-alive connection to the program. One goroutine uses it.
type link struct {
	credential string // a header line
	address    string // where conn leads
	patience   time.Duration
	conn       net.Conn
	r          *bufio.Reader
}

// do sends a request and reads its answer. An error says that there was none.
func (l *link) do(address string, a request) (answer, error) {
	if l.conn == nil || l.address != address {
		l.close()
		conn, err := net.DialTimeout("tcp", address, l.patienceMax())
		if err != nil {
			return answer{}, err
		}
		l.conn, l.address, l.r = conn, address, bufio.NewReader(conn)
	}
	if err := l.conn.SetDeadline(time.Now().Add(l.patienceMax())); err != nil {
		return answer{}, err
	}
	_, err := l.conn.Write(a.Text(address))
	var got answer
	if err == nil {
		got, err = wiretest.ReadAnswer(l.r, a.Method)
	}
	if err != nil || got.Closes {
		l.close()
	}
	return got, err
}

func (l *link) patienceMax() time.Duration { return cmp.Or(l.patience, wiretest.AnswerMax) }

func (l *link) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// worker sends creates and events, each under a key of its own, and writes into
// the ledger what was answered. One goroutine uses it.
type worker struct {
	link   link
	ledger *ledger
	random *rand.Rand
	number int
	sent   int
	// inCluster: it asks any node of a cluster, where one may have none to forward a request to.
	inCluster bool
	pending   *promise   // unanswered; the next one to be sent
	batch     []*promise // likewise, of events that are sent together
}

func newWorkers(count int, l *ledger, token string, seed uint64) []*worker {
	workers := make([]*worker, count)
	for i := range workers {
		workers[i] = &worker{
			link:   link{credential: "Authorization: svc.token " + token},
			ledger: l, number: i,
			random: rand.New(rand.NewPCG(seed, uint64(i))),
		}
	}
	return workers
}

// outcome is what became of one request.
type outcome uint8

const (
	acknowledged outcome = iota // a whole answer with 200 was read
	refused                     // 503 or 429: not applied
	unknown                     // no answer, or 504
)

// step sends the pending request, or a new one, once. Now and then a new one is
// a read.
func (w *worker) step(address string) outcome {
	if w.pending == nil && w.random.IntN(4) == 0 {
		if id := w.ledger.openInstance(w.random); id != "" {
			return w.look(address, id)
		}
	}
	if w.pending == nil && (len(w.batch) > 0 || w.random.IntN(8) == 0 && w.fillBatch()) {
		return w.stepBatch(address)
	}
	if w.pending == nil {
		w.pending = w.next()
	}
	p := w.pending
	a, err := w.link.do(address, p.ask(w.link.credential))
	switch {
	case err != nil || a.Status == http.StatusGatewayTimeout || w.inCluster && a.Status == http.StatusBadGateway:
		w.ledger.unanswered(p)
		return unknown
	case a.Status == http.StatusServiceUnavailable || a.Status == http.StatusTooManyRequests:
		w.refusal(a)
		return refused
	}
	w.pending = nil
	w.ledger.answered(p, a)
	return acknowledged
}

func (w *worker) fillBatch() bool {
	for range 1 + w.random.IntN(20) {
		w.sent++
		key := fmt.Sprintf("w%d-%d", w.number, w.sent)
		if id := w.ledger.openInstance(w.random); id != "" {
			body := wiretest.EventBody("load", id, "e."+key, `{"last":"`+key+`"},"id":"`+key+`"`)
			w.batch = append(w.batch, w.ledger.promise(key, id, body))
		}
	}
	return len(w.batch) > 0
}

// stepBatch sends the batch once, as lines. A result that was read whole is a promise, also
// of an answer that breaks off.
func (w *worker) stepBatch(address string) outcome {
	r := request{Method: http.MethodPost, Path: wiretest.Root + "/events", Headers: []string{"Content-Type: application/x-ndjson", w.link.credential}}
	for _, p := range w.batch {
		r.Body += p.body + "\n"
	}
	status, lines, whole := w.link.lines(address, r)
	var left []*promise
	end := refused
	for i, p := range w.batch {
		var result struct{ Status, Sequence int }
		if i < len(lines) {
			_ = json.Unmarshal([]byte(lines[i]), &result) // what is none has no status
		}
		switch {
		case result.Status == http.StatusOK:
			w.ledger.promised(p, result.Sequence)
			end = acknowledged
			continue
		case i >= len(lines) && (whole || status == http.StatusServiceUnavailable), result.Status == http.StatusServiceUnavailable, result.Status == http.StatusTooManyRequests:
		case i >= len(lines) || result.Status == http.StatusGatewayTimeout || w.inCluster && result.Status == http.StatusBadGateway:
			w.ledger.unanswered(p)
			end = unknown
		default:
			w.ledger.violated("%s in a batch was answered with %s", p.key, lines[i])
		}
		left = append(left, p)
	}
	w.batch = left
	return end
}

// lines sends a request and reads the lines of its answer: also those of one that breaks
// off, which is not whole. Status 0: there was no answer.
func (l *link) lines(address string, r request) (status int, lines []string, whole bool) {
	l.close()
	conn, err := net.DialTimeout("tcp", address, l.patienceMax())
	if err != nil {
		return 0, nil, false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(l.patienceMax()))
	if _, err := conn.Write(r.Text(address)); err != nil {
		return 0, nil, false
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, false
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return res.StatusCode, nil, false
	}
	body := bufio.NewReader(res.Body)
	for {
		line, err := body.ReadString('\n')
		if err != nil {
			return res.StatusCode, lines, errors.Is(err, io.EOF)
		}
		lines = append(lines, line)
	}
}

// refusal demands the form of a 503 or 429, Retry-After included.
func (w *worker) refusal(a answer) {
	reason := a.FaultReason(a.Status, "Busy")
	if reason != "" && a.Status == http.StatusServiceUnavailable {
		reason = a.FaultReason(a.Status, "Unavailable")
	}
	if reason != "" {
		w.ledger.violated("a refusal: %s", reason)
	}
}

// look reads an instance, alone or in the list. What is shown must hold all that
// was acknowledged before, and must not be taken back by a kill.
func (w *worker) look(address, id string) outcome {
	path, read := wiretest.Root+"/instance/load/"+id, sightOfInstance
	if w.random.IntN(4) == 0 {
		path, read = wiretest.Root+"/instances/load?filter="+url.QueryEscape(`{"_id":"`+id+`"}`), sightOfList
	}
	least := w.ledger.leastEntries(id)
	a, err := w.link.do(address, request{Method: http.MethodGet, Path: path, Headers: []string{w.link.credential}})
	switch {
	case err != nil || w.inCluster && (a.Status == http.StatusBadGateway || a.Status == http.StatusGatewayTimeout):
		return unknown
	case a.Status == http.StatusServiceUnavailable || a.Status == http.StatusTooManyRequests:
		w.refusal(a)
		return refused
	}
	seen, err := read(a)
	if err != nil {
		w.ledger.violated("a look at %s: %v in %d %s", id, err, a.Status, a.Body)
	} else if seen.entries < least {
		w.ledger.violated("a look at %s showed %d entries after %d were acknowledged or shown", id, seen.entries, least)
	}
	w.ledger.shown(id, seen)
	return acknowledged
}

// next invents a request: mostly an event to an instance that others send to as
// well, sometimes a create.
func (w *worker) next() *promise {
	w.sent++
	key := fmt.Sprintf("w%d-%d", w.number, w.sent)
	instance := w.ledger.openInstance(w.random)
	if instance == "" || w.random.IntN(20) == 0 {
		return w.ledger.promise(key, "", wiretest.CreateBody("load", `{"svcPublic":{"key":"`+key+`"}}`))
	}
	return w.ledger.promise(key, instance, wiretest.EventBody("load", instance, "e."+key, `{"last":"`+key+`"}`))
}

func (p *promise) ask(credential string) request {
	path := wiretest.Root + "/event"
	if p.instance == "" {
		path = wiretest.Root + "/create"
	}
	return request{
		Method: http.MethodPost, Path: path, Body: p.body,
		Headers: []string{wiretest.JSONType, credential, "Idempotency-Key: " + p.key},
	}
}
