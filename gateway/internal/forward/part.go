package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"troupe/actors/failure"
	"troupe/actors/workflow/batch"
	"troupe/gateway/internal/kernel"
)

// SendItems sends a part; peer.ErrNotSent when nothing was sent. The answer must be closed, also with an error.
func (f *Forwarder) SendItems(ctx context.Context, x *kernel.Exchange, to Peer, from *kernel.Sender, items []*batch.Item) (*PartAnswer, error) {
	ctx, cancel := context.WithCancel(ctx)
	a := &PartAnswer{cancel: cancel, silenceMax: x.Kernel.Options.WriteMax}
	a.silence = time.AfterFunc(a.silenceMax, cancel)
	h, err := headerFor(x, from)
	if err != nil {
		return a, err
	}
	delete(h, "Idempotency-Key")
	delete(h, "Content-Length")
	h["Content-Type"] = kernel.ValueJSON
	h["Accept-Encoding"] = []string{"identity"} // NB: this node reads the answer, whatever the caller can read
	body := []byte{'['}
	for i, m := range items {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, m.Text...)
	}
	request := requestFor(ctx, x, to.Node, h, append(body, ']'))
	a.answer, err = to.Transport.RoundTrip(request) //nolint:bodyclose // PartAnswer.Close does
	if err == nil {
		a.results = json.NewDecoder(a.answer.Body)
		f.Metrics.Forwarded.Add(1)
	}
	return a, err
}

// PartAnswer is the answer of another node to a part.
type PartAnswer struct {
	answer     *http.Response // nil when there is none
	results    *json.Decoder
	begun      bool
	silence    *time.Timer // silence ends the request when nothing comes for silenceMax
	silenceMax time.Duration
	cancel     context.CancelFunc
}

// Status is that of the whole answer.
func (a *PartAnswer) Status() int { return a.answer.StatusCode }

// Close ends the request.
func (a *PartAnswer) Close() {
	if a.answer != nil {
		_ = a.answer.Body.Close()
	}
	a.silence.Stop()
	a.cancel()
}

// Next returns the next result, which is an object with a status.
func (a *PartAnswer) Next() (text []byte, status int, err error) {
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

// Refusal is why the other node did not take the part as a whole; nil when it did.
func (a *PartAnswer) Refusal() error {
	if a.Status() == http.StatusOK {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(a.answer.Body, pieceBytes))
	var body struct{ Message string }
	_ = json.Unmarshal(text, &body)
	cause := CauseOf(a.Status())
	if body.Message == "" || failure.Of(cause).Kind == failure.ErrUnavailable {
		return cause
	}
	return failure.Refuse(failure.Of(cause).Kind, "%s", body.Message)
}

// CauseOf is the error whose answer has a status. It says what has to be done, not more: those of 503 are one.
func CauseOf(status int) error {
	switch status {
	case http.StatusServiceUnavailable:
		return failure.ErrUnavailable
	case http.StatusTooManyRequests:
		return failure.ErrQuota
	}
	for kind := failure.ErrInvalid; kind < failure.Kinds; kind++ {
		if kernel.ErrorMappings[kind].Status == status {
			return kind
		}
	}
	return failure.ErrUnavailable
}
