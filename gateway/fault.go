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

// group is a group of the interface. The groups share their statuses, but not
// all of their words.
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

// fault is how one kind of error is answered (gateway/INTERFACE.md, "Errors").
type fault struct {
	cause  error
	status int
	// words are the values of the member "error", by group.
	words [groups]string
	// text is the message. Empty: the error's own text is meant for the caller.
	text string
	// retry says that nothing was applied and that a Retry-After goes along.
	retry bool
	// ours says that the fault is not the caller's: the answer carries an id
	// under which the log has the error.
	ours bool
}

// all is the words of a fault that is called the same in B, C and D.
func all(portal, others string) [groups]string {
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

// faults is the one table of errors. The first row whose cause the error wraps
// decides; what is in no row is internal. It is never changed.
var faults = []fault{
	{cause: errMalformed, status: 400, words: wordsInvalid},
	{cause: failure.ErrInvalid, status: 400, words: wordsInvalid},
	{cause: provider.ErrFlow, status: 400, words: wordsInvalid, text: "this browser has not begun to sign in, or too long ago"},
	{cause: errUnauthorized, status: 401, words: wordsUnauthorized, text: textUnauthorized},
	{cause: identity.ErrUnauthorized, status: 401, words: wordsUnauthorized, text: textUnauthorized},
	{cause: provider.ErrRefused, status: 401, words: wordsUnauthorized, text: textUnauthorized},
	{cause: errCrossOrigin, status: 403, words: wordsForbidden, text: "a page of another site must not ask for this"},
	{cause: errPrivilege, status: 403, words: wordsForbidden, text: textForbidden},
	{cause: failure.ErrForbidden, status: 403, words: wordsForbidden, text: textForbidden},
	{cause: errNotFound, status: 404, words: wordsNotFound, text: textNotFound},
	{cause: failure.ErrNotFound, status: 404, words: wordsNotFound, text: textNotFound},
	{
		cause: errMethod, status: 405, words: all("Method not allowed", "MethodNotAllowed"),
		text: "this path does not take the method; the header Allow lists those that it takes",
	},
	{
		cause: failure.ErrNotAllowed, status: 409, words: all("Conflict", "EventNotAllowed"),
		text: "nothing takes this event in the present state",
	},
	{
		cause: failure.ErrPrecondition, status: 412, words: all("Precondition failed", "PreconditionFailed"),
		text: "what the condition in the request demands does not hold, or not any more",
	},
	{cause: errTooLarge, status: 413, words: wordsTooLarge},
	{cause: failure.ErrTooLarge, status: 413, words: wordsTooLarge, text: "the instance would become too large"},
	{cause: template.ErrTooLarge, status: 413, words: wordsTooLarge},
	{cause: repository.ErrTooLarge, status: 413, words: wordsTooLarge, text: "the file is too large"},
	{cause: errMediaType, status: 415, words: all("Unsupported media type", "UnsupportedMediaType")},
	{
		cause: failure.ErrKeyReused, status: 422, text: "the idempotency key was used for another request",
		words: [groups]string{groupPortal: "Unprocessable", groupWorkflow: "KeyReused", groupFile: "Unprocessable"},
	},
	{
		cause: identity.ErrTooManyAttempts, status: 429, words: wordsBusy, retry: true,
		text: "there were too many failed attempts; nothing was looked at, try again later",
	},
	{cause: template.ErrNotTemplate, status: 422, words: wordsUnprocessable},
	{cause: template.ErrEncrypted, status: 422, words: wordsUnprocessable},
	{cause: failure.ErrQuota, status: 429, words: wordsBusy, retry: true},
	{cause: failure.ErrInstanceBusy, status: 429, words: wordsBusy, text: textBusy, retry: true},
	{cause: errBusy, status: 503, words: wordsBusy, text: textBusy, retry: true},
	{cause: failure.ErrBusy, status: 503, words: wordsBusy, text: textBusy, retry: true},
	{cause: identity.ErrBusy, status: 503, words: wordsBusy, text: textBusy, retry: true},
	{cause: provider.ErrBusy, status: 503, words: wordsBusy, text: textBusy, retry: true},
	{cause: provider.ErrUnavailable, status: 503, words: wordsUnavailable, text: textUnavailable, retry: true},
	{cause: identity.ErrFull, status: 503, words: wordsBusy, text: textBusy, retry: true},
	{cause: errNotReady, status: 503, words: wordsUnavailable, text: textUnavailable, retry: true},
	{cause: failure.ErrUnavailable, status: 503, words: wordsUnavailable, text: textUnavailable, retry: true},
	{cause: failure.ErrOutcomeUnknown, status: 504, words: wordsUnknown, text: textUnknown},
	// A request that was given up in the middle may have been applied.
	{cause: context.Canceled, status: 504, words: wordsUnknown, text: textUnknown},
	{cause: context.DeadlineExceeded, status: 504, words: wordsUnknown, text: textUnknown},
	{
		cause: failure.ErrExecution, status: 500, ours: true, words: all("Server error", "MarshallingError"),
		text: "the workflow's data could not be processed; nothing was stored",
	},
	{cause: failure.ErrInternal, status: 500, words: wordsInternal, text: textInternal, ours: true},
	{cause: identity.ErrStopped, status: 503, words: wordsUnavailable, text: textUnavailable, retry: true},
	// Errors of the store that identity passes on. NB: last, because an error of
	// the workflows may wrap one of them and says more.
	{cause: persistence.ErrStalled, status: 503, words: wordsUnavailable, text: textUnavailable, retry: true},
	{cause: persistence.ErrDiskFull, status: 503, words: wordsUnavailable, text: textUnavailable, retry: true},
	{cause: persistence.ErrReadOnly, status: 503, words: wordsUnavailable, text: textUnavailable, retry: true},
	{cause: persistence.ErrClosed, status: 503, words: wordsUnavailable, text: textUnavailable, retry: true},
	{
		cause: persistence.ErrOutcomeUnknown, status: 504, words: wordsUnknown,
		text: "it is not known whether this was done; it does no harm to ask again",
	},
}

var (
	wordsInvalid       = [groups]string{groupPortal: "Bad request", groupWorkflow: "InvalidContent", groupFile: "BadRequest"}
	wordsUnauthorized  = all("Unauthorized", "Unauthorized")
	wordsForbidden     = all("Access denied", "AccessDenied")
	wordsNotFound      = all("Not found", "NotFound")
	wordsTooLarge      = all("Too large", "TooLarge")
	wordsUnprocessable = all("Unprocessable", "Unprocessable")
	wordsBusy          = all("Busy", "Busy")
	wordsUnavailable   = all("Busy", "Unavailable")
	wordsUnknown       = all("Busy", "OutcomeUnknown")
	wordsInternal      = all("Server error", "Internal")
)

const (
	textUnauthorized = "a valid API token or session is needed"
	// textSessionNeeded is for group A, which takes nothing else.
	textSessionNeeded = "a session is needed"
)

// internal is the answer to every error that the table does not know.
var internal = fault{status: http.StatusInternalServerError, words: wordsInternal, text: textInternal, ours: true}

// faultOf finds the row of an error.
func faultOf(err error) *fault {
	for i := range faults {
		if errors.Is(err, faults[i].cause) {
			return &faults[i]
		}
	}
	return &internal
}

// message returns the text for the caller. id is the request's, for faults of
// ours.
func (f *fault) message(err error, id string) string {
	switch {
	case f.ours:
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
func (f *fault) appendBody(dst []byte, g group, message string) []byte {
	dst = append(dst, `{"error":`...)
	dst = data.AppendString(dst, f.words[g])
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
