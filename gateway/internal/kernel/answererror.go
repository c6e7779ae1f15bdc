package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"troupe/actors/failure"
	"troupe/gateway/api"
	"troupe/statemachine/document"
)

// writeError answers with an error, or closes the connection when the answer has
// already begun.
func (x *Exchange) writeError(err error) {
	f := x.MappingOf(err)
	if f.Internal && !errors.Is(err, ErrAborted) {
		x.Kernel.Options.Log.Error().Err(err).Str("request", x.RequestID()).Str("route", x.Route.Name).
			Msg("request failed")
	}
	if x.Status != 0 || errors.Is(err, ErrAborted) {
		x.Status = statusAborted
		return
	}
	x.answerError(f, err)
}

// MappingOf returns the row of an error. Another node is told where it has to ask.
func (x *Exchange) MappingOf(err error) *ErrorMapping {
	if x.Sender != nil && failure.Of(err).Kind == failure.ErrElsewhere {
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
	case f.Status == http.StatusUnauthorized && x.Route.Access.SignIn:
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
	delete(h, "Content-Encoding")
	if f.Status == http.StatusUnauthorized {
		h["Www-Authenticate"] = valueChallenge
	}
	if f.Retry {
		h["Retry-After"] = RetryAfter(RetryAfterMin)
	}
}

// statusAborted is the status of an answer that was aborted.
const statusAborted = -1

// answerPanic answers a request whose handler panicked.
func (x *Exchange) answerPanic(reason any) {
	x.Kernel.metrics.panics.Add(1)
	x.Kernel.Options.Log.Error().Str("request", x.RequestID()).Str("route", x.Route.Name).
		Str("panic", fmt.Sprint(reason)).Bytes("stack", debug.Stack()).Msg("handler panicked")
	if x.Status != 0 {
		x.Status = statusAborted
		return
	}
	x.answerError(&ErrorMappings[failure.ErrInternal], nil)
}

// AnswerFaults answers with the faults of text files that an error has. Any other error is
// returned.
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
