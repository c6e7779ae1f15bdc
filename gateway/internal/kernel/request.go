package kernel

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// AnonymousBodyBytesMax bounds the body of a request to a route without a
// credential. It has room for a name and a password, however they are escaped.
const AnonymousBodyBytesMax = 128 << 10

const (
	// BodyFirstBytes is what is set aside for a body before any of it is there, so
	// that a length which is only claimed costs nothing.
	BodyFirstBytes = 16 << 10
	// bodySureBytes must have come before all is set aside that was claimed: growing on and on
	// makes twice as much garbage.
	bodySureBytes = 64 << 10
)

// ReadBody reads a request's body to its end. It must be called before anything is done: wrong chunk framing and a body
// that stops short show only here, and such a request must not act (persistence/PROMISES.md, "F11"). What is beyond
// BodyFirstBytes it has paid before it reads it. The bytes are new and belong to the caller.
func ReadBody(w http.ResponseWriter, r *http.Request, maxBytes int64, pay func(n int64) error) ([]byte, error) {
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
	body := make([]byte, 0, min(room, BodyFirstBytes)+1) // NB: the end is found by reading one byte more
	for {
		if len(body) == cap(body) {
			more := int(most) - len(body) + 1
			if r.ContentLength < 0 || len(body) < bodySureBytes {
				more = max(512, min(len(body), more))
			}
			body = slices.Grow(body, more)
			if len(body) >= BodyFirstBytes {
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
		return nil, parse.Malformed("the body cannot be read to its end")
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

// HasEncodedSlash reports whether a path has a slash that is data to anyone who sent it.
func HasEncodedSlash(rawPath string) bool {
	return rawPath != "" && (strings.Contains(rawPath, "%2F") || strings.Contains(rawPath, "%2f"))
}

func (x *Exchange) bodyBytesMax() int64 {
	if x.Route.ContentBytesMax > 0 {
		return x.Route.ContentBytesMax
	}
	if x.Route.Access.Kinds == 0 {
		return min(x.Kernel.Options.BodyBytesMax, AnonymousBodyBytesMax)
	}
	return x.Kernel.Options.BodyBytesMax
}

// ParseQuery parses the query strictly: net/http's own parser drops what it
// does not understand (persistence/PROMISES.md, "F17").
func (x *Exchange) ParseQuery() error {
	if x.Request.URL.RawQuery == "" || x.Route.IgnoresQuery {
		return nil
	}
	query, err := url.ParseQuery(x.Request.URL.RawQuery)
	if err != nil {
		return parse.Malformed("the query is malformed")
	}
	for name, values := range query {
		if !x.Route.AnyQuery && !slices.Contains(x.Route.Query, name) {
			return parse.Malformed("unknown query parameter %s", parse.Quote(name))
		}
		if len(values) > 1 {
			return parse.Malformed("the query parameter %q is repeated", name)
		}
	}
	x.Query = query
	return nil
}

// checkContent checks the headers about the body, for methods that have one. The
// body of any other request is read and ignored.
func (x *Exchange) checkContent() error {
	if IsSafe(x.Request.Method) {
		return nil
	}
	if err := parse.CheckEncoding(x.Request.Header); err != nil {
		return err
	}
	// An HTML form of another site can send a body, but not as application/json.
	contentType := parse.HeaderOptional
	if x.isAmbient() && x.Request.ContentLength != 0 || x.Route.Access.SignIn {
		contentType = parse.HeaderRequired
	}
	if x.Route.ReadsBody && parse.IsLines(x.Request.Header) || x.Route.TakesYAML && parse.IsYAML(x.Request.Header) {
		return nil
	}
	err := parse.CheckContentType(x.Request.Header, cmp.Or(x.Route.Content, "application/json"), contentType)
	if err != nil && x.Route.ReadsBody {
		return failure.Refuse(failure.ErrMediaType, "the Content-Type must be application/json or application/x-ndjson, in UTF-8")
	}
	if err != nil && x.Route.TakesYAML {
		return failure.Refuse(failure.ErrMediaType, "the Content-Type must be application/json or application/yaml, in UTF-8")
	}
	return err
}

// CheckIdentifiers requires that all parameters of the path are valid identifiers.
// Nothing has an invalid one, so it is failure.ErrNotFound.
func (x *Exchange) CheckIdentifiers() error {
	for _, param := range x.Params {
		if !statemachine.IsIdentifier(param.Value) {
			return failure.ErrNotFound
		}
	}
	return nil
}

// InstanceRequest is for the instance that the path names.
func (x *Exchange) InstanceRequest() (*message.Load, error) {
	of := &message.Load{Caller: x.Caller, WorkflowID: x.Params.ByName("workflowId"), InstanceID: x.Params.ByName("instanceId")}
	return of, x.CheckIdentifiers()
}

// KeyedBody reads the idempotency key of the header, empty without one, and the body of a POST.
func (x *Exchange) KeyedBody() (key string, body data.Value, err error) {
	if key, err = parse.IdempotencyKey(x.Request.Header["Idempotency-Key"]); err == nil {
		body, err = parse.Body(x.Body)
	}
	return key, body, err
}

// RetryOf joins the key of the header with event.id, which mean the same, and takes the fingerprint of what is asked.
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

// Fingerprint is the same for requests that ask the same: the method, the route and the body without its white space.
func Fingerprint(method, route string, body data.Value) [32]byte {
	h := sha256.New()
	_, _ = io.WriteString(h, method+" "+route+"\n") // a hash takes everything
	_, _ = h.Write(body)
	return [32]byte(h.Sum(nil))
}
