package gateway

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"strconv"

	"troupe/actors/failure"
	"troupe/gateway/internal/parse"
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
	status int
	// labels has the value of the member "error" for each group.
	labels [groups]string
	// text is the message when the error gives no reason.
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

// errorMappings is the one table of errors: a row for each kind. It is never changed.
var errorMappings = [failure.Kinds]errorMapping{
	failure.ErrInvalid:      {status: 400, labels: labelsInvalid, text: failure.ErrInvalid.Error()},
	failure.ErrUnauthorized: {status: 401, labels: labelsOf("Unauthorized", "Unauthorized"), text: textUnauthorized},
	failure.ErrForbidden:    {status: 403, labels: labelsOf("Access denied", "AccessDenied"), text: textForbidden},
	failure.ErrNotFound:     {status: 404, labels: labelsOf("Not found", "NotFound"), text: textNotFound},
	failure.ErrMethod: {
		status: 405, labels: labelsOf("Method not allowed", "MethodNotAllowed"),
		text: "the method is not allowed for this path; the header Allow lists those that are",
	},
	failure.ErrNotAllowed: {
		status: 409, labels: labelsOf("Conflict", "EventNotAllowed"),
		text: "no transition takes this event in the current state",
	},
	failure.ErrClaimed:  {status: 409, labels: labelsOf("Conflict", "Claimed"), text: "somebody else has the task"},
	failure.ErrEnded:    {status: 409, labels: labelsOf("Conflict", "Ended"), text: "the instance was stopped, or cancelled by its parent, and takes nothing more"},
	failure.ErrConflict: {status: 409, labels: labelsOf("Conflict", "Conflict"), text: failure.ErrConflict.Error()},
	failure.ErrExists:   {status: 409, labels: labelsOf("Conflict", "AlreadyExists"), text: failure.ErrExists.Error()},
	failure.ErrInUse:    {status: 409, labels: labelsOf("Conflict", "InUse"), text: "another instance needs this one: its parent, or its child"},
	failure.ErrGone:     {status: 410, labels: labelsOf("Gone", "Gone"), text: failure.ErrGone.Error()},
	failure.ErrPrecondition: {
		status: 412, labels: labelsOf("Precondition failed", "PreconditionFailed"),
		text: "the condition in the request does not hold, or no longer holds",
	},
	failure.ErrTooLarge:      {status: 413, labels: labelsOf("Too large", "TooLarge"), text: "the instance would become too large"},
	failure.ErrMediaType:     {status: 415, labels: labelsOf("Unsupported media type", "UnsupportedMediaType"), text: failure.ErrMediaType.Error()},
	failure.ErrKeyReused:     {status: 422, labels: labelsKeyReused, text: "the idempotency key was used for another request"},
	failure.ErrUnprocessable: {status: 422, labels: labelsOf("Unprocessable", "Unprocessable"), text: failure.ErrUnprocessable.Error()},
	failure.ErrInstanceBusy:  {status: 429, labels: labelsBusy, text: textBusy, retry: true},
	failure.ErrQuota:         {status: 429, labels: labelsBusy, text: failure.ErrQuota.Error(), retry: true},
	failure.ErrBusy:          {status: 503, labels: labelsBusy, text: textBusy, retry: true},
	failure.ErrUnavailable:   {status: 503, labels: labelsOf("Busy", "Unavailable"), text: textUnavailable, retry: true},
	failure.ErrElsewhere:     {status: 503, labels: labelsOf("Busy", "Unavailable"), text: textUnavailable, retry: true},
	failure.ErrOutcomeUnknown: {
		status: 504, labels: labelsOf("Busy", "OutcomeUnknown"),
		text: "it is not known whether this was done; repeat it, with the same Idempotency-Key if it had one",
	},
	failure.ErrExecution: {
		status: 500, labels: labelsOf("Server error", "MarshallingError"), internal: true,
		text: "the workflow's data could not be processed; nothing was stored",
	},
	failure.ErrInternal: {status: 500, labels: labelsOf("Server error", "Internal"), text: "an internal error occurred", internal: true},
}

// misdirected is the row of failure.ErrElsewhere for another node, which asks for the leader again.
var misdirected = errorMapping{status: http.StatusMisdirectedRequest, labels: labelsOf("Elsewhere", "Elsewhere"), text: failure.ErrElsewhere.Error()}

var (
	labelsInvalid   = [groups]string{groupPortal: "Bad request", groupWorkflow: "InvalidContent", groupFile: "BadRequest"}
	labelsKeyReused = [groups]string{groupPortal: "Unprocessable", groupWorkflow: "KeyReused", groupFile: "Unprocessable"}
	labelsBusy      = labelsOf("Busy", "Busy")
)

const (
	textForbidden    = "you have no right to do this"
	textNotFound     = "there is nothing here, or nothing that you may see"
	textBusy         = "the service is busy; nothing was done, try again later"
	textUnavailable  = "the service takes no requests now; nothing was done, try again later"
	textUnauthorized = "a valid API token or session is needed"
	// textSessionNeeded is for group A, which takes nothing else.
	textSessionNeeded = "a session is needed"
	// textWrongPassword answers a sign-in, whatever was wrong with it.
	textWrongPassword = "wrong user or password"
	// textFormClosed is for group A, where nobody has sent an event.
	textFormClosed = "the form takes no draft or submission now, or not with this data"
)

// isClosed reports whether an error is for textFormClosed: it tells people of forms nothing better.
func isClosed(err *failure.Error) bool {
	return errorMappings[err.Kind].status == http.StatusConflict && err.Kind != failure.ErrInUse && err.Kind != failure.ErrClaimed && err.Reason == ""
}

// mappingOf returns the row of an error.
func mappingOf(err error) *errorMapping { return &errorMappings[failure.Of(err).Kind] }

// message returns the text for the caller. id is that of the request; internal
// errors name it, and those with an incident name that.
func (f *errorMapping) message(err error, id string) string {
	of := failure.Of(err)
	switch {
	case of.Reference != "":
		return "The workflow failed (expression error). Nothing was saved. Reference " + of.Reference + "."
	case f.internal && of.Reason == "":
		return f.text + "; the log has more under " + id
	}
	return parse.Clip(cmp.Or(of.Reason, f.text))
}

// appendBody appends the body of an error to dst.
func (f *errorMapping) appendBody(dst []byte, g group, message string) []byte {
	dst = append(dst, `{"error":`...)
	dst = data.AppendString(dst, f.labels[g])
	dst = append(dst, `,"message":`...)
	dst = data.AppendString(dst, message)
	return append(dst, '}')
}

// retryAfter draws the seconds of a Retry-After, at most longest, so that callers who were
// refused together do not come back together.
func retryAfter(longest int64) []string { return retrySeconds[rand.Int64N(longest)] }

// retrySeconds are the values of the header from one second on.
var retrySeconds = func() (values [retryAfterMax][]string) {
	for i := range values {
		values[i] = []string{strconv.Itoa(i + 1)}
	}
	return values
}()
