package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/quota"
	"troupe/actors/repository"
	"troupe/actors/template"
	"troupe/gateway/provider"
	"troupe/persistence"
	"troupe/statemachine/data"
)

// group is a group of operations of the interface. All groups answer with the same
// statuses, but some errors have another label in each.
type group uint8

const (
	// groupWorkflow is B, and all that belongs to no group.
	groupWorkflow group = iota
	// groupPortal is A.
	groupPortal
	// groupFile is C and D.
	groupFile

	groups
)

// errorMapping says how one kind of error is answered (gateway/INTERFACE.md, "Errors").
type errorMapping struct {
	cause  error
	status int
	// labels has the value of the member "error" for each group.
	labels [groups]string
	// text is the message. Empty: the error's own text is meant for the caller.
	text string
	// retry: nothing was applied, and the answer has the header Retry-After.
	retry bool
	// internal: the error is logged, and the answer names the id of its log line.
	internal bool
}

// labelsOf returns the labels of an error whose label is the same in groups B, C and D.
func labelsOf(portal, others string) [groups]string {
	return [groups]string{groupPortal: portal, groupWorkflow: others, groupFile: others}
}

const (
	textForbidden   = "you have no right to do this"
	textNotFound    = "there is nothing here, or nothing that you may see"
	textBusy        = "too much is asked at once; nothing was done, try again later"
	textUnavailable = "the service takes no requests now; nothing was done, try again later"
	textUnknown     = "it is not known whether this was done; ask again with the same Idempotency-Key"
	textInternal    = "something is wrong on our side"
)

// errorMappings is the one table of errors. The first row whose cause the error wraps
// decides; what is in no row is internal. It is never changed.
var errorMappings = []errorMapping{
	{cause: errMalformed, status: 400, labels: labelsInvalid},
	{cause: failure.ErrInvalid, status: 400, labels: labelsInvalid},
	{cause: provider.ErrFlow, status: 400, labels: labelsInvalid, text: "the sign-in was not started in this browser, or has expired"},
	{cause: errUnauthorized, status: 401, labels: labelsUnauthorized, text: textUnauthorized},
	{cause: identity.ErrUnauthorized, status: 401, labels: labelsUnauthorized, text: textUnauthorized},
	{cause: provider.ErrRefused, status: 401, labels: labelsUnauthorized, text: textUnauthorized},
	{cause: errCrossOrigin, status: 403, labels: labelsForbidden, text: "requests from pages of other sites are not allowed"},
	{cause: errPrivilege, status: 403, labels: labelsForbidden, text: textForbidden},
	{cause: failure.ErrForbidden, status: 403, labels: labelsForbidden, text: textForbidden},
	{cause: errNotFound, status: 404, labels: labelsNotFound, text: textNotFound},
	{cause: failure.ErrNotFound, status: 404, labels: labelsNotFound, text: textNotFound},
	{
		cause: errMethod, status: 405, labels: labelsOf("Method not allowed", "MethodNotAllowed"),
		text: "the method is not allowed for this path; the header Allow lists those that are",
	},
	{
		cause: failure.ErrNotAllowed, status: 409, labels: labelsOf("Conflict", "EventNotAllowed"),
		text: "nothing takes this event in the present state",
	},
	{
		cause: failure.ErrPrecondition, status: 412, labels: labelsOf("Precondition failed", "PreconditionFailed"),
		text: "what the condition in the request demands does not hold, or not any more",
	},
	{cause: errTooLarge, status: 413, labels: labelsTooLarge},
	{cause: failure.ErrTooLarge, status: 413, labels: labelsTooLarge, text: "the instance would become too large"},
	{cause: template.ErrTooLarge, status: 413, labels: labelsTooLarge},
	{cause: repository.ErrTooLarge, status: 413, labels: labelsTooLarge, text: "the file is too large"},
	{cause: errMediaType, status: 415, labels: labelsOf("Unsupported media type", "UnsupportedMediaType")},
	{
		cause: failure.ErrKeyReused, status: 422, text: "the idempotency key was used for another request",
		labels: [groups]string{groupPortal: "Unprocessable", groupWorkflow: "KeyReused", groupFile: "Unprocessable"},
	},
	{
		cause: identity.ErrTooManyAttempts, status: 429, labels: labelsBusy, retry: true,
		text: "too many failed attempts; the credentials were not checked, try again later",
	},
	{cause: template.ErrNotTemplate, status: 422, labels: labelsUnprocessable},
	{cause: template.ErrEncrypted, status: 422, labels: labelsUnprocessable},
	{cause: failure.ErrQuota, status: 429, labels: labelsBusy, retry: true},
	{cause: failure.ErrInstanceBusy, status: 429, labels: labelsBusy, text: textBusy, retry: true},
	{cause: errBusy, status: 503, labels: labelsBusy, text: textBusy, retry: true},
	{cause: failure.ErrBusy, status: 503, labels: labelsBusy, text: textBusy, retry: true},
	{cause: identity.ErrBusy, status: 503, labels: labelsBusy, text: textBusy, retry: true},
	{cause: provider.ErrBusy, status: 503, labels: labelsBusy, text: textBusy, retry: true},
	{cause: provider.ErrUnavailable, status: 503, labels: labelsUnavailable, text: textUnavailable, retry: true},
	{cause: identity.ErrFull, status: 503, labels: labelsBusy, text: textBusy, retry: true},
	{cause: errNotReady, status: 503, labels: labelsUnavailable, text: textUnavailable, retry: true},
	{cause: failure.ErrUnavailable, status: 503, labels: labelsUnavailable, text: textUnavailable, retry: true},
	{cause: failure.ErrOutcomeUnknown, status: 504, labels: labelsUnknown, text: textUnknown},
	// A request that was given up in the middle may have been applied.
	{cause: context.Canceled, status: 504, labels: labelsUnknown, text: textUnknown},
	{cause: context.DeadlineExceeded, status: 504, labels: labelsUnknown, text: textUnknown},
	{
		cause: failure.ErrExecution, status: 500, internal: true, labels: labelsOf("Server error", "MarshallingError"),
		text: "the workflow's data could not be processed; nothing was stored",
	},
	{cause: failure.ErrInternal, status: 500, labels: labelsInternal, text: textInternal, internal: true},
	{cause: identity.ErrStopped, status: 503, labels: labelsUnavailable, text: textUnavailable, retry: true},
	// Errors of the store that identity passes on. NB: last, because an error of
	// the workflows may wrap one of them and says more.
	{cause: persistence.ErrStalled, status: 503, labels: labelsUnavailable, text: textUnavailable, retry: true},
	{cause: persistence.ErrDiskFull, status: 503, labels: labelsUnavailable, text: textUnavailable, retry: true},
	{cause: persistence.ErrReadOnly, status: 503, labels: labelsUnavailable, text: textUnavailable, retry: true},
	{cause: persistence.ErrClosed, status: 503, labels: labelsUnavailable, text: textUnavailable, retry: true},
	{
		cause: persistence.ErrOutcomeUnknown, status: 504, labels: labelsUnknown,
		text: "the outcome is unknown; it is safe to repeat the request",
	},
}

var (
	labelsInvalid       = [groups]string{groupPortal: "Bad request", groupWorkflow: "InvalidContent", groupFile: "BadRequest"}
	labelsUnauthorized  = labelsOf("Unauthorized", "Unauthorized")
	labelsForbidden     = labelsOf("Access denied", "AccessDenied")
	labelsNotFound      = labelsOf("Not found", "NotFound")
	labelsTooLarge      = labelsOf("Too large", "TooLarge")
	labelsUnprocessable = labelsOf("Unprocessable", "Unprocessable")
	labelsBusy          = labelsOf("Busy", "Busy")
	labelsUnavailable   = labelsOf("Busy", "Unavailable")
	labelsUnknown       = labelsOf("Busy", "OutcomeUnknown")
	labelsInternal      = labelsOf("Server error", "Internal")
)

const (
	textUnauthorized = "a valid API token or session is needed"
	// textSessionNeeded is for group A, which takes nothing else.
	textSessionNeeded = "a session is needed"
)

// internalError is the answer to every error that the table does not know.
var internalError = errorMapping{status: http.StatusInternalServerError, labels: labelsInternal, text: textInternal, internal: true}

// mappingOf returns the row of an error.
func mappingOf(err error) *errorMapping {
	for i := range errorMappings {
		if errors.Is(err, errorMappings[i].cause) {
			return &errorMappings[i]
		}
	}
	return &internalError
}

// message returns the text for the caller. id is that of the request; internal
// errors name it.
func (f *errorMapping) message(err error, id string) string {
	switch {
	case f.internal:
		return f.text + "; the log has more under " + id
	case f.text != "":
		return f.text
	}
	return clip(reason(err, f.cause))
}

// reason returns what an error says behind its cause: "unknown event" of "send
// x to y: invalid content: unknown event". What stands in front is for the log,
// and its subject may be raw input of any length.
func reason(err, cause error) string {
	text := innermost(err, cause).Error()
	if text == cause.Error() {
		return text
	}
	return strings.TrimPrefix(text, cause.Error()+": ")
}

// innermost returns the error in the tree of err that wraps cause itself.
// NB: the text cannot be searched for the cause's, because input may hold it.
func innermost(err, cause error) error {
	for {
		var wrapped []error
		switch e := err.(type) { //nolint:errorlint // every layer is looked at
		case interface{ Unwrap() error }:
			wrapped = []error{e.Unwrap()}
		case interface{ Unwrap() []error }:
			wrapped = e.Unwrap()
		}
		i := slices.IndexFunc(wrapped, func(e error) bool { return errors.Is(e, cause) })
		if i < 0 || wrapped[i] == cause { //nolint:errorlint // the layer around it is wanted
			return err
		}
		err = wrapped[i]
	}
}

// appendBody appends the body of an error to dst.
func (f *errorMapping) appendBody(dst []byte, g group, message string) []byte {
	dst = append(dst, `{"error":`...)
	dst = data.AppendString(dst, f.labels[g])
	dst = append(dst, `,"message":`...)
	dst = data.AppendString(dst, message)
	return append(dst, '}')
}

// waitOf is how long a caller has to wait, where the error says so.
func waitOf(err error) time.Duration {
	if late := (*identity.AttemptsError)(nil); errors.As(err, &late) {
		return late.Wait
	}
	if over := (*quota.Error)(nil); errors.As(err, &over) {
		return over.Wait
	}
	return 0
}

// retryAfter draws the seconds of a Retry-After, so that callers who were
// refused together do not come back together.
func retryAfter() []string {
	return retrySeconds[rand.IntN(len(retrySeconds))]
}

var retrySeconds = [...][]string{{"1"}, {"2"}, {"3"}}
