package kernel

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
	"troupe/gateway/leader"
	"troupe/statemachine/document"
)

// Values of headers. They are shared by all answers and never changed.
var (
	ValueJSON         = []string{"application/json"}
	valueNoStore      = []string{"no-store"}
	valueNosniff      = []string{"nosniff"}
	ValueClose        = []string{"close"}
	valueChallenge    = []string{`svc.token realm="troupe", Bearer realm="troupe"`}
	valueMinimal      = []string{"return=minimal"}
	ValueRepresented  = []string{"return=representation"}
	ValueLines        = []string{"application/x-ndjson"}
	lengthSetBytesMin = 2048 // below, net/http sets Content-Length without an allocation
)

// LargeAnswerBytes is the size from which an answer counts towards Options.AnswerBytesMax while it is sent.
const LargeAnswerBytes = 256 << 10

// Send writes x.Out as the whole answer. The bytes of large answers are limited,
// for all callers and for one: above the limit, answers to safe methods are shed.
func (x *Exchange) Send(status int) {
	if err := x.record(); err != nil {
		x.Out = nil
		x.writeError(err)
		return
	}
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
	h["Vary"] = valuesVary[x.Vary]
	if length >= lengthSetBytesMin {
		h["Content-Length"] = []string{strconv.Itoa(length)}
	}
	x.Status = status
	x.Writer.WriteHeader(status)
}

func (s *Kernel) setCommonHeaders(h http.Header, r *http.Request) {
	h["Content-Type"] = ValueJSON
	h["Cache-Control"] = valueNoStore
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

// Answers that are sent whole (JSON, pages and the files of pages) are compressed with gzip when the request accepts it.
// Streams are not, because an event or a piece of a list must be sent at once (gateway/DESIGN.md, "Compression").
const (
	GzipJSONBytesMin = 4 << 10
	GzipPageBytesMin = 1 << 10 // below, compressing saves no network packet
)

// compress returns the bytes to send for x.Out: in gzip, if the request accepts it and
// mayCompress allows it. It sets the headers for that. x.Out keeps its buffer.
func (x *Exchange) compress() []byte {
	if !x.mayCompress() {
		return x.Out
	}
	x.Vary |= VaryEncoding
	if !parse.AcceptsGzip(x.Request.Header["Accept-Encoding"]) {
		return x.Out
	}
	compressed := Gzipped(x.Out, &FastGzip)
	if len(compressed) >= len(x.Out) {
		return x.Out
	}
	h := x.Writer.Header()
	h["Content-Encoding"] = valueGzip
	if tag := h["Etag"]; len(tag) == 1 {
		h["Etag"] = []string{gzipTag(tag[0])}
	}
	return compressed
}

// mayCompress reports whether the answer in x.Out may be compressed.
func (x *Exchange) mayCompress() bool {
	bytesMin := GzipPageBytesMin
	if x.ContentType == nil { // JSON
		bytesMin = GzipJSONBytesMin
	}
	// NB: an attacker who can put text beside a secret and sees the length of the
	// compressed answer can guess the secret (BREACH). So answers with secrets are not
	// compressed, nor answers to requests that another site's page made with the cookie.
	return len(x.Out) >= bytesMin && !x.Route.Secret && !(x.isAmbient() && x.isCrossOriginFetch())
}

// isCrossOriginFetch reports whether the browser says that a page of another origin made the request.
func (x *Exchange) isCrossOriginFetch() bool {
	switch x.Request.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return true
}

// GzipWriters is a pool of compressors, each with some 800 KiB of working memory. BenchmarkGzip is the reason for it.
type GzipWriters struct{ sync.Pool }

// NewGzipWriters makes a pool for a level.
func NewGzipWriters(level int) GzipWriters {
	return GzipWriters{sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(io.Discard, level)
		if err != nil {
			panic("gateway: gzip does not know the level: " + err.Error())
		}
		return w
	}}}
}

var FastGzip, bestGzip = NewGzipWriters(gzip.BestSpeed), NewGzipWriters(gzip.BestCompression)

// Gzipped returns text in gzip. The bytes belong to the caller.
func Gzipped(text []byte, with *GzipWriters) []byte {
	w := with.Get().(*gzip.Writer)
	defer with.Put(w)
	var out bytes.Buffer
	out.Grow(len(text) / 4)
	w.Reset(&out)
	_, _ = w.Write(text) // a bytes.Buffer never returns an error
	_ = w.Close()
	return out.Bytes()
}

func gzipTag(tag string) string { return formTag(tag, api.GzipSuffix) }

func formTag(tag, suffix string) string { return strings.TrimSuffix(tag, `"`) + suffix + `"` }

var valueGzip = []string{"gzip"}

const statusAborted = -1

// writeError answers with an error, or closes the connection when the answer has already begun.
func (x *Exchange) writeError(err error) {
	f := x.MappingOf(err)
	if f.Internal && !errors.Is(err, ErrAborted) {
		x.logged(x.Kernel.Options.Log.Error().Err(err)).Msg("request failed")
	}
	if x.Status != 0 || errors.Is(err, ErrAborted) {
		x.Status = statusAborted
		return
	}
	x.answerError(f, err)
}

// AppendItemError appends the answer to one item of a request with many.
func (x *Exchange) AppendItemError(err error) {
	f := x.MappingOf(err)
	id := ""
	if f.Internal {
		id = x.RequestID()
		x.logged(x.Kernel.Options.Log.Error().Err(err)).Msg("item failed")
	}
	x.Out = append(x.Out, `{"status":`...)
	x.Out = strconv.AppendInt(x.Out, int64(f.Status), 10)
	x.Out = append(x.Out, ',')
	at := len(x.Out)
	x.Out = f.AppendBody(x.Out, x.Route.Group, f.Message(err, id))
	x.Out = append(x.Out[:at], x.Out[at+1:]...) // the brace of the body
}

// MappingOf returns the row of an error. Another node is told where it has to ask.
func (x *Exchange) MappingOf(err error) *ErrorMapping {
	if x.Sender != nil && failure.Of(err).Kind == failure.ErrNotLeader {
		return &misdirected
	}
	return MappingOf(err)
}

// answerError writes the answer to an error; err may be nil for internal errors.
func (x *Exchange) answerError(f *ErrorMapping, err error) {
	id := ""
	if f.Internal {
		id = x.RequestID()
	}
	SetErrorHeaders(x.Writer.Header(), f)
	switch reason := failure.Of(err); {
	case reason.Wait > 0:
		x.Writer.Header()["Retry-After"] = []string{strconv.Itoa(int((reason.Wait + time.Second - 1) / time.Second))}
	case reason.Kind == failure.ErrBusy:
		x.Writer.Header()["Retry-After"] = RetryAfter(x.Kernel.Pressure.retryAfter.Load())
	}
	x.ContentType, x.CacheControl = nil, nil
	switch {
	case x.ErrorPage != nil:
		x.ErrorPage(f.Status)
		return
	case x.Route.ErrorPage != nil:
		x.Route.ErrorPage(x, f.Status)
		return
	case x.Kernel.hooks.ErrorPage(x, f.Status, id):
		return
	}
	message := f.Message(err, id)
	switch {
	case f.Status == http.StatusUnauthorized && x.Route.Access.SignIn && failure.Of(err).Reason == "":
		message = textWrongPassword
	case f.Status == http.StatusUnauthorized && x.Route.Group == GroupPortal:
		message = TextSessionNeeded
		x.Writer.Header()["Www-Authenticate"] = x.Kernel.sessionChallenge
	case x.Route.Group == GroupPortal && isClosed(failure.Of(err)):
		message = textFormClosed
	}
	x.Out = f.AppendBody(x.Out[:0], x.Route.Group, message)
	x.Send(f.Status)
}

// SetErrorHeaders sets the headers of an error, and takes away those of a success.
func SetErrorHeaders(h http.Header, f *ErrorMapping) {
	delete(h, "Etag")
	delete(h, "Preference-Applied")
	delete(h, "Link")
	delete(h, "Set-Cookie")
	delete(h, leader.Header)
	delete(h, "Content-Encoding")
	if f.Status == http.StatusUnauthorized {
		h["Www-Authenticate"] = valueChallenge
	}
	if f.Retry {
		h["Retry-After"] = RetryAfter(RetryAfterMin)
	}
}

func (x *Exchange) answerPanic(reason any) {
	x.Kernel.metrics.panics.Add(1)
	x.logged(x.Kernel.Options.Log.Error()).
		Str("panic", fmt.Sprint(reason)).Bytes("stack", debug.Stack()).Msg("handler panicked")
	if x.Status != 0 {
		x.Status = statusAborted
		return
	}
	x.answerError(&ErrorMappings[failure.ErrInternal], nil)
}

// AnswerFaults answers with the faults of text files that an error has. Any other error is returned.
func (x *Exchange) AnswerFaults(err error) error {
	var faults document.Faults
	f := MappingOf(err)
	if !errors.As(err, &faults) || f.Status != http.StatusBadRequest {
		return err
	}
	body := api.Fault{Error: f.Labels[x.Route.Group], Message: f.Message(err, "")}
	for _, fault := range faults {
		body.Faults = append(body.Faults, api.FileFault(fault))
	}
	if x.Out, err = json.Marshal(body); err != nil {
		return err
	}
	SetErrorHeaders(x.Writer.Header(), f)
	x.Send(f.Status)
	return nil
}

// valuesVary are the values of the header Vary, by Answer.Vary.
var valuesVary = func() (values [1 << 4][]string) {
	for v := range values {
		text := "Cookie, Authorization, Authentication"
		for bit, name := range []string{"Accept", "Accept-Encoding", "Accept-Language", "Origin"} {
			if v>>bit&1 == 1 {
				text += ", " + name
			}
		}
		values[v] = []string{text}
	}
	return values
}()

// IsSafe reports whether a method changes nothing (RFC 9110, 9.2.1), so that its
// answer may be refused after the work is done.
func IsSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }
