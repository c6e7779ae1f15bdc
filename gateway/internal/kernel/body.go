package kernel

import (
	"errors"
	"io"
	"net/http"
	"slices"

	"troupe/actors/failure"
	"troupe/gateway/internal/parse"
)

const (
	// BodyFirstBytes is what is set aside for a body before any of it is there, so
	// that a length which is only claimed costs nothing.
	BodyFirstBytes = 16 << 10
	// bodySureBytes must have come before all is set aside that was claimed: growing on and on
	// makes twice as much garbage.
	bodySureBytes = 64 << 10
)

// ReadBody reads a request's body to its end. It must be called before anything is
// done: wrong chunk framing and a body that stops short show only here, and such a
// request must not act (persistence/PROMISES.md, "F11"). What is beyond BodyFirstBytes it has
// paid before it reads it. The bytes are new and belong to the caller.
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
