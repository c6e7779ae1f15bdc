package kernel

import (
	"net/http"
	"strconv"
)

// LargeAnswerBytes is the size from which an answer counts towards
// Options.AnswerBytesMax while it is sent.
const LargeAnswerBytes = 256 << 10

// Send writes x.out as the whole answer. The bytes of large answers are limited,
// for all callers and for one: above the limit, answers to safe methods are shed.
func (x *Exchange) Send(status int) {
	if size := int64(len(x.Out)); size >= LargeAnswerBytes && x.Usage != nil {
		s := x.Kernel
		// One answer may be of any size, but counts for no more than its caller may have.
		size = min(size, s.Limits.userAnswerBytes)
		ofUser, ofAll := x.Usage.AnswerBytes.Add(size), s.AnswerBytes.Add(size)
		defer x.Usage.AnswerBytes.Add(-size)
		defer s.AnswerBytes.Add(-size)
		var err error
		switch {
		case !IsSafe(x.Request.Method): // what was done is answered at once
			x.Charge(int64(len(x.Out)))
		case ofUser > s.Limits.userAnswerBytes || ofAll > s.Options.AnswerBytesMax:
			err = x.RejectOverload()
		default:
			err = x.Pay(int64(len(x.Out)))
		}
		if err != nil {
			x.Out = nil
			x.writeError(err)
			return
		}
	}
	answer := x.compress()
	x.sendHeader(status, len(answer))
	_, _ = x.Writer.Write(answer) // NB: an error means that the caller has gone
}

// sendHeader begins the answer. A negative length means that it is streamed.
func (x *Exchange) sendHeader(status, length int) {
	h := x.Writer.Header()
	x.Kernel.setCommonHeaders(h, x.Request)
	if x.ContentType != nil {
		h["Content-Type"] = x.ContentType
	}
	if x.CacheControl != nil {
		h["Cache-Control"] = x.CacheControl
	}
	switch {
	case x.VaryAccept && x.VaryEncoding:
		h["Vary"] = valueVaryBoth
	case x.VaryAccept:
		h["Vary"] = valueVaryAccept
	case x.VaryEncoding:
		h["Vary"] = valueVaryEncoding
	}
	x.addVaryLanguage(h)
	if length >= lengthSetBytesMin {
		h["Content-Length"] = []string{strconv.Itoa(length)}
	}
	x.Status = status
	x.Writer.WriteHeader(status)
}

// addVaryLanguage says that the answer depends on Accept-Language, if it does.
func (x *Exchange) addVaryLanguage(h http.Header) {
	if x.VaryLanguage {
		h["Vary"] = []string{h["Vary"][0] + ", Accept-Language"}
	}
}

// setCommonHeaders sets what every answer has.
func (s *Kernel) setCommonHeaders(h http.Header, r *http.Request) {
	h["Content-Type"] = ValueJSON
	h["Cache-Control"] = valueNoStore
	h["Vary"] = valueVary
	h["X-Content-Type-Options"] = valueNosniff
	s.SetConnectionHeader(h, r)
}

// SetConnectionHeader says whether the connection is closed behind the answer.
func (s *Kernel) SetConnectionHeader(h http.Header, r *http.Request) {
	// NB: net/http serves the request behind a chunked body even when there was
	// a Content-Length too (persistence/PROMISES.md, "F11"); so the connection is closed.
	if len(r.TransferEncoding) > 0 || s.Draining.Load() {
		h["Connection"] = ValueClose
	}
}
