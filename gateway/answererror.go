package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"troupe/actors/failure"
)

// refuse answers with an error, or closes the connection when the answer has
// already begun.
func (x *exchange) refuse(err error) {
	f := x.mappingOf(err)
	if f.internal && !errors.Is(err, errAborted) {
		x.server.options.Log.Error().Err(err).Str("request", x.requestID()).Str("route", x.route.name).
			Msg("request failed")
	}
	if x.status != 0 || errors.Is(err, errAborted) {
		x.status = statusAborted
		return
	}
	x.answerError(f, err)
}

// mappingOf returns the row of an error. Another node is told where it has to ask.
func (x *exchange) mappingOf(err error) *errorMapping {
	if x.sender != nil && failure.Of(err).Kind == failure.ErrElsewhere {
		return &misdirected
	}
	return mappingOf(err)
}

// answerError writes the answer to an error; err may be nil for internal errors.
func (x *exchange) answerError(f *errorMapping, err error) {
	id := ""
	if f.internal {
		id = x.requestID()
	}
	setErrorHeaders(x.w.Header(), f)
	switch reason := failure.Of(err); {
	case reason.Wait > 0:
		x.w.Header()["Retry-After"] = []string{strconv.Itoa(int((reason.Wait + time.Second - 1) / time.Second))}
	case reason.Kind == failure.ErrBusy:
		x.w.Header()["Retry-After"] = retryAfter(x.server.pressure.retryAfter.Load())
	}
	x.contentType, x.cacheControl = nil, nil
	if x.route.page {
		x.answerLoginPage(f)
		return
	}
	if x.server.wantsErrorPage(x.r, f.status) {
		x.answerErrorPage(f, id)
		return
	}
	message := f.message(err, id)
	switch {
	case f.status == http.StatusUnauthorized && x.route.access.signIn:
		message = textWrongPassword
	case f.status == http.StatusUnauthorized && x.route.group == groupPortal:
		message = textSessionNeeded
		x.w.Header()["Www-Authenticate"] = x.server.sessionChallenge
	case x.route.group == groupPortal && isClosed(failure.Of(err)):
		message = textFormClosed
	}
	x.out = f.appendBody(x.out[:0], x.route.group, message)
	x.send(f.status)
}

func setErrorHeaders(h http.Header, f *errorMapping) {
	delete(h, "Etag")
	delete(h, "Preference-Applied")
	delete(h, "Link")
	delete(h, "Set-Cookie")
	delete(h, "Content-Encoding")
	if f.status == http.StatusUnauthorized {
		h["Www-Authenticate"] = valueChallenge
	}
	if f.retry {
		h["Retry-After"] = retryAfter(retryAfterMin)
	}
}

// statusAborted is the status of an answer that was aborted.
const statusAborted = -1

// answerPanic answers a request whose handler panicked.
func (x *exchange) answerPanic(reason any) {
	x.server.metrics.panics.Add(1)
	x.server.options.Log.Error().Str("request", x.requestID()).Str("route", x.route.name).
		Str("panic", fmt.Sprint(reason)).Bytes("stack", debug.Stack()).Msg("handler panicked")
	if x.status != 0 {
		x.status = statusAborted
		return
	}
	x.answerError(&errorMappings[failure.ErrInternal], nil)
}
