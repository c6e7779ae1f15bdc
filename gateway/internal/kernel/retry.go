package kernel

import (
	"crypto/sha256"
	"io"

	"troupe/actors/message"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// KeyedBody reads the idempotency key of the header, empty without one, and the
// body of a POST.
func (x *Exchange) KeyedBody() (key string, body data.Value, err error) {
	if key, err = parse.IdempotencyKey(x.Request.Header["Idempotency-Key"]); err == nil {
		body, err = parse.Body(x.Body)
	}
	return key, body, err
}

// RetryOf joins the key of the header with event.id, which mean the same, and
// takes the fingerprint of what is asked.
func RetryOf(x *Exchange, header, eventID string, body data.Value) (message.Retry, error) {
	key := header
	switch {
	case key == "":
		key = eventID
	case eventID != "" && eventID != key:
		return message.Retry{}, parse.Malformed(`the header Idempotency-Key and "event.id" differ`)
	}
	if key == "" {
		return message.Retry{}, nil
	}
	x.Keyed = true
	return message.Retry{Key: key, Fingerprint: Fingerprint(x.Request.Method, x.Route.Name, body)}, nil
}

// Fingerprint is the same for requests that ask the same: the method, the route
// and the body without its white space.
func Fingerprint(method, route string, body data.Value) [32]byte {
	h := sha256.New()
	_, _ = io.WriteString(h, method+" "+route+"\n") // a hash takes everything
	_, _ = h.Write(body)
	return [32]byte(h.Sum(nil))
}
