package gateway

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/workflow/batch"
	"troupe/gateway/internal/parse"
)

// Items whose shard another node leads go there as parts of the batch, one part of a shard at a time
// (gateway/DESIGN.md, "Batches in a cluster"):
//
//	batch ── items of a shard ──► who leads? ──► another node ──► its answers, as they come
//	  ▲                             ▲    │             │
//	  ├────── this node leads ──────┼────┘             │
//	  └──── answered                └── 421, or no answer to what has a key

// part says that a forwarded body has items of a batch, all of one shard.
type part struct {
	// Key is the idempotency key of the whole batch; empty without one. Numbers are then the places
	// of the items in the whole, from 0.
	Key     string `json:"key,omitempty"`
	Numbers []int  `json:"numbers,omitempty"`
	// Keep asks to keep Key for the whole batch, whose fingerprint it is, in hexadecimal. Such a
	// part has no items.
	Keep string `json:"keep,omitempty"`
}

// sendPart answers a part that another node has sent. The answer is that to an array.
func sendPart(x *exchange) error {
	defer x.releaseBody()
	p := x.sender.Part
	source, err := x.readItems(false)
	if err != nil {
		return err
	}
	if p.Key != "" && len(p.Numbers) != len(source.items) {
		return parse.Malformed("a part has %d numbers for %d items", len(p.Numbers), len(source.items))
	}
	if p.Keep != "" {
		retry := message.Retry{Key: p.Key}
		if n, err := hex.Decode(retry.Fingerprint[:], []byte(p.Keep)); err != nil || n != len(retry.Fingerprint) {
			return parse.Malformed("a part has no fingerprint")
		}
		if err := x.services.Workflows.KeepKey(x.caller, retry); err != nil {
			return err
		}
	}
	run := &batchRun{
		x: x, source: source, batch: batch.New(x.services.Workflows, nil), key: p.Key, numbers: p.Numbers,
		represent: parse.PreferredReturn(x.r.Header["Prefer"]) == "representation",
	}
	defer source.close()
	defer run.occupy(false)
	return run.do()
}

// keepKey keeps the key of a batch, on whichever node leads its shard.
func (x *exchange) keepKey(retry message.Retry) error {
	err := x.services.Workflows.KeepKey(x.caller, retry)
	shard, ok := x.elsewhere(err)
	if !ok || x.services.Peers == nil {
		return err
	}
	from, err := x.introduce()
	if err != nil {
		return err
	}
	from.Part = &part{Key: retry.Key, Keep: hex.EncodeToString(retry.Fingerprint[:])}
	ctx, cancel := context.WithTimeout(x.server.requests, x.server.options.LeaderWaitMax)
	defer cancel()
	f := forwarding{x: x, shard: shard}
	for {
		to, err := f.leader(ctx)
		switch {
		case err != nil:
			return err
		case to.Transport == nil:
			err = x.services.Workflows.KeepKey(x.caller, retry)
			if shard, ok := x.elsewhere(err); ok {
				f.shard = shard
				continue
			}
			return err
		}
		answer, err := x.sendItems(ctx, to, from, nil)
		if err != nil || answer.status() == http.StatusMisdirectedRequest { // NB: to keep a key twice is to keep it once
			answer.close()
			continue
		}
		cause := answer.refusal()
		answer.close()
		return cause
	}
}

// batchForwarder sends the items of one batch. It implements batch.Forwarder.
type batchForwarder struct {
	x       *exchange
	key     string // of the whole batch
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newBatchForwarder(x *exchange, key string) *batchForwarder {
	f := &batchForwarder{x: x, key: key}
	f.ctx, f.cancel = context.WithCancel(x.server.requests)
	return f
}

// stop gives up what is on its way. NB: the exchange goes back to its pool behind it.
func (f *batchForwarder) stop() {
	f.cancel()
	f.running.Wait()
}

// Forward implements batch.Forwarder. It is called on the goroutine of the batch, which changes the
// caller.
func (f *batchForwarder) Forward(shard uint16, items []*batch.Item, end func(here bool)) {
	from, err := f.x.introduce()
	if err != nil {
		answerAll(items, err)
		end(false)
		return
	}
	p := &outgoing{batchForwarder: f, from: from, to: forwarding{x: f.x, shard: shard}, items: items}
	f.running.Go(func() { end(p.run()) })
}

func answerAll(items []*batch.Item, err error) {
	for _, m := range items {
		m.Answered(nil, err)
	}
}

// outgoing are items of one shard on their way.
type outgoing struct {
	*batchForwarder
	from  *sender
	to    forwarding
	items []*batch.Item // that have no answer, in their order
}

// run tries until all items are answered, or it is this node that leads.
func (p *outgoing) run() (here bool) {
	ctx, cancel := context.WithTimeout(p.ctx, p.x.server.options.LeaderWaitMax)
	defer cancel()
	for len(p.items) > 0 {
		to, err := p.to.leader(ctx)
		switch {
		case err != nil:
			answerAll(p.items, err)
			return false
		case to.Transport == nil:
			return true
		}
		p.send(to)
	}
	return false
}

// send sends the items once, and keeps those that have to be sent again.
func (p *outgoing) send(to Peer) {
	p.from.Part = &part{Key: p.key}
	for _, m := range p.items {
		if p.key != "" {
			p.from.Part.Numbers = append(p.from.Part.Numbers, m.Number)
		}
	}
	answer, err := p.x.sendItems(p.ctx, to, p.from, p.items)
	defer answer.close()
	switch {
	case errors.Is(err, errNotSent):
	case err != nil:
		p.lose()
	case answer.status() == http.StatusOK:
		p.take(answer)
	case answer.status() == http.StatusMisdirectedRequest, answer.status() == http.StatusServiceUnavailable:
		// NB: without room there the items wait, as they do here.
	default:
		answerAll(p.items, answer.refusal())
		p.items = nil
	}
}

// take takes the results. NB: what an answer that breaks off does not say is not known.
func (p *outgoing) take(answer *partAnswer) {
	again := p.items[:0]
	for i, m := range p.items {
		text, status, err := answer.next()
		if err != nil {
			p.items = p.items[i:]
			p.lose()
			p.items = append(again, p.items...)
			return
		}
		switch {
		case status == http.StatusMisdirectedRequest:
			if m.NotDone() {
				again = append(again, m)
			}
		case status == http.StatusOK:
			m.AnsweredBy(text, nil)
		default:
			m.AnsweredBy(text, causeOf(status))
		}
	}
	p.items = again
}

// lose keeps the items that may be sent twice.
func (p *outgoing) lose() {
	again := p.items[:0]
	for _, m := range p.items {
		if m.Lost() {
			again = append(again, m)
		}
	}
	p.items = again
}

// errNotSent: there was no connection to the other node.
var errNotSent = errors.New("not sent")

// sendItems sends a part; errNotSent when nothing was sent. The answer must be closed, also with an
// error.
func (x *exchange) sendItems(ctx context.Context, to Peer, from *sender, items []*batch.Item) (*partAnswer, error) {
	ctx, cancel := context.WithCancel(ctx)
	a := &partAnswer{cancel: cancel, silenceMax: x.server.options.WriteMax}
	a.silence = time.AfterFunc(a.silenceMax, cancel)
	h, err := x.headerFor(from)
	if err != nil {
		return a, err
	}
	delete(h, "Idempotency-Key")
	delete(h, "Content-Length")
	h["Content-Type"] = valueJSON
	h["Accept-Encoding"] = []string{"identity"} // NB: this node reads the answer, whatever the caller can read
	body := []byte{'['}
	for i, m := range items {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, m.Text...)
	}
	connecting := new(connecting)
	request := x.requestFor(connecting.trace(ctx), to.Node, h, append(body, ']'))
	a.answer, err = to.Transport.RoundTrip(request) //nolint:bodyclose // partAnswer.close does
	if err != nil && connecting.failed() {
		return a, errNotSent
	}
	if err == nil {
		a.results = json.NewDecoder(a.answer.Body)
		x.server.metrics.forwarded.Add(1)
	}
	return a, err
}

// partAnswer is the answer of another node to a part.
type partAnswer struct {
	answer  *http.Response // nil when there is none
	results *json.Decoder
	begun   bool
	// silence ends the request when nothing comes for silenceMax.
	silence    *time.Timer
	silenceMax time.Duration
	cancel     context.CancelFunc
}

func (a *partAnswer) status() int { return a.answer.StatusCode }

func (a *partAnswer) close() {
	if a.answer != nil {
		_, _ = io.CopyN(io.Discard, a.answer.Body, pieceBytes) // the connection can be used again
		_ = a.answer.Body.Close()
	}
	a.silence.Stop()
	a.cancel()
}

// next returns the next result, which is an object with a status.
func (a *partAnswer) next() (text []byte, status int, err error) {
	a.silence.Reset(a.silenceMax)
	for !a.begun { // {"results":[
		token, err := a.results.Token()
		if err != nil {
			return nil, 0, err
		}
		a.begun = token == json.Delim('[')
	}
	var raw json.RawMessage
	var result struct{ Status int }
	if !a.results.More() {
		return nil, 0, io.ErrUnexpectedEOF
	}
	if err = a.results.Decode(&raw); err == nil {
		err = json.Unmarshal(raw, &result)
	}
	if err == nil && result.Status == 0 {
		err = io.ErrUnexpectedEOF
	}
	return bytes.Clone(raw), result.Status, err
}

// refusal is why the other node did not take the part as a whole; nil when it did.
func (a *partAnswer) refusal() error {
	if a.status() == http.StatusOK {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(a.answer.Body, pieceBytes))
	var body struct{ Message string }
	_ = json.Unmarshal(text, &body)
	cause := causeOf(a.status())
	if body.Message == "" || failure.Of(cause).Kind == failure.ErrUnavailable {
		return cause
	}
	return failure.Refuse(failure.Of(cause).Kind, "%s", body.Message)
}

// causeOf is the error whose answer has a status. It says what has to be done, not more: those of
// 503 are one.
func causeOf(status int) error {
	switch status {
	case http.StatusServiceUnavailable:
		return failure.ErrUnavailable
	case http.StatusTooManyRequests:
		return failure.ErrQuota
	}
	for kind := failure.ErrInvalid; kind < failure.Kinds; kind++ {
		if errorMappings[kind].status == status {
			return kind
		}
	}
	return failure.ErrUnavailable
}
