package gateway

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

const (
	// bodyFirstBytes is what is set aside for a body before any of it is there, so
	// that a length which is only claimed costs nothing.
	bodyFirstBytes = 16 << 10
	// bodySureBytes must have come before all is set aside that was claimed: growing on and on
	// makes twice as much garbage.
	bodySureBytes = 64 << 10
)

// readBody reads a request's body to its end. It must be called before anything is
// done: wrong chunk framing and a body that stops short show only here, and such a
// request must not act (persistence/PROMISES.md, "F11"). What is beyond bodyFirstBytes it has
// paid before it reads it. The bytes are new and belong to the caller.
func readBody(w http.ResponseWriter, r *http.Request, maxBytes int64, pay func(n int64) error) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > maxBytes {
		lingerBeforeClose(w, r)
		return nil, failure.Refuse(failure.ErrTooLarge, "the body must not be larger than %d bytes", maxBytes)
	}
	var src io.Reader = r.Body
	room, most := r.ContentLength, r.ContentLength
	if room < 0 { // chunked; otherwise net/http stops at the length
		src = http.MaxBytesReader(w, r.Body, maxBytes)
		room, most = 512, maxBytes
	}
	body := make([]byte, 0, min(room, bodyFirstBytes)+1) // NB: the end is found by reading one byte more
	for {
		if len(body) == cap(body) {
			more := int(most) - len(body) + 1
			if r.ContentLength < 0 || len(body) < bodySureBytes {
				more = max(512, min(len(body), more))
			}
			body = slices.Grow(body, more)
			if len(body) >= bodyFirstBytes {
				if err := pay(min(int64(cap(body)), most) - int64(len(body))); err != nil {
					return nil, err
				}
			}
		}
		n, err := src.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, failure.Refuse(failure.ErrTooLarge, "the body must not be larger than %d bytes", maxBytes)
		}
		if errors.Is(err, failure.ErrBusy) {
			return nil, err
		}
		return nil, malformed("the body cannot be read to its end")
	}
}

// lingerBeforeClose makes net/http wait a moment before it closes the connection of a
// request whose body is not read, so that a caller who is still sending gets to
// see the answer. A caller who asked first whether to send is not sending.
func lingerBeforeClose(w http.ResponseWriter, r *http.Request) {
	if len(r.Header["Expect"]) > 0 {
		return
	}
	// NB: net/http does so only when the limit of a MaxBytesReader is exceeded.
	var first [1]byte
	_, _ = http.MaxBytesReader(w, r.Body, 0).Read(first[:])
}

// keyedBody reads the idempotency key of the header, empty without one, and the
// body of a POST.
func (x *exchange) keyedBody() (key string, body data.Value, err error) {
	if key, err = parseIdempotencyKey(x.r.Header["Idempotency-Key"]); err == nil {
		body, err = parseBody(x.body)
	}
	return key, body, err
}

// parseBody checks the bytes of a JSON body. The result may be a slice of them.
func parseBody(body []byte) (data.Value, error) {
	value, err := data.Clean(body)
	if err != nil {
		return nil, malformed("the body is %v", err)
	}
	if value.Kind() != data.Object {
		return nil, malformed("the body must be a JSON object")
	}
	return value, nil
}

// parseCreate reads the body of create. The values in the result are slices of
// body. What the body says wrongly is failure.ErrInvalid with the name of the member; an
// id that can be nobody's is failure.ErrNotFound, and only when all the rest is well-formed.
func parseCreate(body data.Value) (*message.Create, error) {
	request := new(message.Create)
	var content data.Value
	found := false
	for key, v := range body.Members() {
		var err error
		switch key {
		case "workflowId":
			found = true
			request.WorkflowID, err = stringMember(v, key)
		case "data":
			content, err = objectMember(v, key)
		default:
			err = unknownMember("", key, "workflowId", "data")
		}
		if err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, missingMember("workflowId")
	}
	for key, v := range content.Members() {
		var err error
		switch key {
		case "svcPublic":
			request.Public, err = objectMember(v, "data.svcPublic")
		case "svcPrivate":
			request.Private, err = objectMember(v, "data.svcPrivate")
		default:
			err = unknownMember("data.", key, "svcPublic", "svcPrivate")
		}
		if err != nil {
			return nil, err
		}
	}
	if !statemachine.IsIdentifier(request.WorkflowID) {
		return nil, failure.ErrNotFound
	}
	return request, nil
}

// parseEvent reads the body of event, with the errors of parseCreate. The values in
// the result are slices of body.
func parseEvent(body data.Value) (*message.Event, error) {
	request := new(message.Event)
	var event data.Value
	hasWorkflow, hasInstance := false, false
	for key, v := range body.Members() {
		var err error
		switch key {
		case "workflowId":
			hasWorkflow = true
			request.WorkflowID, err = stringMember(v, key)
		case "instanceId":
			hasInstance = true
			request.InstanceID, err = stringMember(v, key)
		case "event":
			event, err = objectMember(v, key)
		default:
			err = unknownMember("", key, "workflowId", "instanceId", "event")
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case !hasWorkflow:
		return nil, missingMember("workflowId")
	case !hasInstance:
		return nil, missingMember("instanceId")
	case event.Kind() == data.Absent:
		return nil, missingMember("event")
	}
	if err := parseEventObject(event, request); err != nil {
		return nil, err
	}
	if !statemachine.IsIdentifier(request.WorkflowID) || !statemachine.IsIdentifier(request.InstanceID) {
		return nil, failure.ErrNotFound
	}
	return request, nil
}

// parseEventObject reads the member "event" into request.
func parseEventObject(event data.Value, request *message.Event) error {
	hasName := false
	for key, v := range event.Members() {
		var err error
		switch key {
		case "name":
			hasName = true
			request.Name, err = stringMember(v, "event.name")
		case "data":
			request.Data, err = objectMember(v, "event.data")
		case "id":
			if request.ID, err = stringMember(v, "event.id"); err == nil && !isIdempotencyKey(request.ID) {
				err = malformed(`"event.id" must have 1 to %d visible ASCII characters`, idempotencyKeyCharsMax)
			}
		default:
			err = unknownMember("event.", key, "name", "data", "id")
		}
		if err != nil {
			return err
		}
	}
	if !hasName {
		return missingMember("event.name")
	}
	return nil // NB: whether there is such an event only its workflow knows, after the rights
}

// stringMember returns a string member; field is its name in messages.
func stringMember(v data.Value, field string) (string, error) {
	if v.Kind() != data.String {
		return "", malformed("%q must be a string, not %s", field, withArticle(v.Kind()))
	}
	return v.Text(), nil
}

// objectMember returns a member that must be an object. NB: null is not taken for
// absent; who sends it wants something that we do not know.
func objectMember(v data.Value, field string) (data.Value, error) {
	if v.Kind() != data.Object {
		return nil, malformed("%q must be an object, not %s", field, withArticle(v.Kind()))
	}
	return v, nil
}

// withArticle names a kind of JSON in a sentence.
func withArticle(k data.Kind) string {
	switch k {
	case data.Null:
		return "null"
	case data.Array, data.Object:
		return "an " + k.String()
	default:
		return "a " + k.String()
	}
}

func missingMember(field string) error {
	return malformed("%q is missing", field)
}

// unknownMember refuses a member that is none of the known ones. Keys are
// compared with their case; whoever got only that wrong is told so.
func unknownMember(prefix, key string, known ...string) error {
	for _, k := range known {
		if strings.EqualFold(k, key) {
			return malformed("unknown member %s; it is written %q", quote(prefix+key), prefix+k)
		}
	}
	return malformed("unknown member %s; allowed are %s", quote(prefix+key), strings.Join(known, ", "))
}

// retryOf joins the key of the header with event.id, which mean the same, and
// takes the fingerprint of what is asked.
func retryOf(x *exchange, header, eventID string, body data.Value) (message.Retry, error) {
	key := header
	switch {
	case key == "":
		key = eventID
	case eventID != "" && eventID != key:
		return message.Retry{}, malformed(`the header Idempotency-Key and "event.id" differ`)
	}
	if key == "" {
		return message.Retry{}, nil
	}
	x.keyed = true
	return message.Retry{Key: key, Fingerprint: fingerprint(x.r.Method, x.route.name, body)}, nil
}

// fingerprint is the same for requests that ask the same: the method, the route
// and the body without its white space.
func fingerprint(method, route string, body data.Value) [32]byte {
	h := sha256.New()
	_, _ = io.WriteString(h, method+" "+route+"\n") // a hash takes everything
	_, _ = h.Write(body)
	return [32]byte(h.Sum(nil))
}
