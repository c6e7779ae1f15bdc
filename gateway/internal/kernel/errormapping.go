package kernel

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"

	"troupe/actors/failure"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// Group is a group of operations of the interface. All groups answer with the same
// statuses, but some errors have another label in each.
type Group uint8

const (
	// GroupWorkflow is B, and all that belongs to no group.
	GroupWorkflow Group = iota
	// GroupPortal is A.
	GroupPortal
	// GroupFile is C and D.
	GroupFile

	groups
)

// ErrorMapping says how one kind of error is answered (gateway/INTERFACE.md, "Errors").
type ErrorMapping struct {
	Status   int
	Labels   [groups]string // Labels has the value of the member "error" for each group
	Text     string         // the message when the error gives no reason
	Retry    bool           // nothing was applied, and the answer has the header Retry-After
	Internal bool           // the error is logged, and the answer names the id of its log line
}

// labelsOf returns the labels of an error whose label is the same in groups B, C and D.
func labelsOf(portal, others string) [groups]string {
	return [groups]string{GroupPortal: portal, GroupWorkflow: others, GroupFile: others}
}

// ErrorMappings is the one table of errors: a row for each kind. It is never changed.
var ErrorMappings = [failure.Kinds]ErrorMapping{
	failure.ErrInvalid:      {Status: 400, Labels: labelsInvalid, Text: failure.ErrInvalid.Error()},
	failure.ErrUnauthorized: {Status: 401, Labels: labelsOf("Unauthorized", "Unauthorized"), Text: textUnauthorized},
	failure.ErrForbidden:    {Status: 403, Labels: labelsOf("Access denied", "AccessDenied"), Text: TextForbidden},
	failure.ErrNotFound:     {Status: 404, Labels: labelsOf("Not found", "NotFound"), Text: TextNotFound},
	failure.ErrMethod: {
		Status: 405, Labels: labelsOf("Method not allowed", "MethodNotAllowed"),
		Text: "the method is not allowed for this path; see the header Allow",
	},
	failure.ErrNotAllowed: {
		Status: 409, Labels: labelsOf("Conflict", "EventNotAllowed"),
		Text: "no transition accepts this event in the current state",
	},
	failure.ErrClaimed:  {Status: 409, Labels: labelsOf("Conflict", "Claimed"), Text: "the task is assigned to someone else"},
	failure.ErrEnded:    {Status: 409, Labels: labelsOf("Conflict", "Ended"), Text: "the instance was stopped, or cancelled by its parent, and accepts no more events"},
	failure.ErrConflict: {Status: 409, Labels: labelsOf("Conflict", "Conflict"), Text: failure.ErrConflict.Error()},
	failure.ErrExists:   {Status: 409, Labels: labelsOf("Conflict", "AlreadyExists"), Text: failure.ErrExists.Error()},
	failure.ErrInUse:    {Status: 409, Labels: labelsOf("Conflict", "InUse"), Text: "another instance needs this one: its parent, or its child"},
	failure.ErrKeyTaken: {Status: 409, Labels: labelsOf("Conflict", "KeyTaken"), Text: "another instance that has not ended has the key"},
	failure.ErrNotKept:  {Status: 409, Labels: labelsOf("Conflict", "NotKept"), Text: "the history does not have all that made an entry"},
	failure.ErrLeaseLost: {
		Status: 409, Labels: labelsOf("Conflict", "LeaseLost"),
		Text: "the lease has ended or belongs to another worker; stop working on the job",
	},
	failure.ErrGone: {Status: 410, Labels: labelsOf("Gone", "Gone"), Text: failure.ErrGone.Error()},
	failure.ErrPrecondition: {
		Status: 412, Labels: labelsOf("Precondition failed", "PreconditionFailed"),
		Text: "the condition of the request does not hold",
	},
	failure.ErrTooLarge:      {Status: 413, Labels: labelsOf("Too large", "TooLarge"), Text: "the instance would become too large"},
	failure.ErrMediaType:     {Status: 415, Labels: labelsOf("Unsupported media type", "UnsupportedMediaType"), Text: failure.ErrMediaType.Error()},
	failure.ErrKeyReused:     {Status: 422, Labels: labelsKeyReused, Text: "the idempotency key was used for another request"},
	failure.ErrUnprocessable: {Status: 422, Labels: labelsOf("Unprocessable", "Unprocessable"), Text: failure.ErrUnprocessable.Error()},
	failure.ErrInstanceBusy:  {Status: 429, Labels: labelsBusy, Text: textBusy, Retry: true},
	failure.ErrQuota:         {Status: 429, Labels: labelsBusy, Text: failure.ErrQuota.Error(), Retry: true},
	failure.ErrBusy:          {Status: 503, Labels: labelsBusy, Text: textBusy, Retry: true},
	failure.ErrUnavailable:   {Status: 503, Labels: labelsOf("Busy", "Unavailable"), Text: TextUnavailable, Retry: true},
	failure.ErrNotLeader:     {Status: 503, Labels: labelsOf("Busy", "Unavailable"), Text: TextUnavailable, Retry: true},
	failure.ErrOutcomeUnknown: {
		Status: 504, Labels: labelsOf("Busy", "OutcomeUnknown"),
		Text: "the outcome is unknown; repeat the request, with the same Idempotency-Key if it had one",
	},
	failure.ErrExecution: {
		Status: 500, Labels: labelsOf("Server error", "MarshallingError"), Internal: true,
		Text: "the workflow's data could not be processed; nothing was stored",
	},
	failure.ErrInternal: {Status: 500, Labels: labelsOf("Server error", "Internal"), Text: "an internal error occurred", Internal: true},
}

// misdirected is the row of failure.ErrNotLeader for another node, which asks for the leader again.
var misdirected = ErrorMapping{Status: http.StatusMisdirectedRequest, Labels: labelsOf("Elsewhere", "Elsewhere"), Text: failure.ErrNotLeader.Error()}

var (
	labelsInvalid   = [groups]string{GroupPortal: "Bad request", GroupWorkflow: "InvalidContent", GroupFile: "BadRequest"}
	labelsKeyReused = [groups]string{GroupPortal: "Unprocessable", GroupWorkflow: "KeyReused", GroupFile: "Unprocessable"}
	labelsBusy      = labelsOf("Busy", "Busy")
)

const (
	TextForbidden    = "permission denied"
	TextNotFound     = "not found, or you don't have access"
	textBusy         = "the service is busy; nothing was done, try again later"
	TextUnavailable  = "the service accepts no requests now; nothing was done, try again later"
	textUnauthorized = "a valid API token or session is needed"
	// TextSessionNeeded is for group A, which takes nothing else.
	TextSessionNeeded = "a session is needed"
	// textWrongPassword answers a sign-in with a password, whatever was wrong with it.
	textWrongPassword = "wrong user or password"
	// textFormClosed is for group A, where nobody has sent an event.
	textFormClosed = "the form does not accept a draft or submission now, or not with this data"
)

// isClosed reports whether an error is for textFormClosed: it tells people of forms nothing better.
func isClosed(err *failure.Error) bool {
	return ErrorMappings[err.Kind].Status == http.StatusConflict && err.Kind != failure.ErrInUse && err.Kind != failure.ErrClaimed && err.Reason == ""
}

// MappingOf returns the row of an error.
func MappingOf(err error) *ErrorMapping { return &ErrorMappings[failure.Of(err).Kind] }

// Message returns the text for the caller. id is that of the request; internal
// errors name it, and those with an incident name that.
func (f *ErrorMapping) Message(err error, id string) string {
	of := failure.Of(err)
	switch {
	case of.Reference != "":
		return "The workflow failed (expression error). Nothing was saved; until the workflow or the data is another, it fails again. Those who run it see why in troupe incident list. Reference " + of.Reference + "."
	case f.Internal && of.Reason == "":
		return f.Text + "; the log has more under " + id
	}
	return parse.Clip(cmp.Or(of.Reason, f.Text))
}

// AppendBody appends the body of an error to dst.
func (f *ErrorMapping) AppendBody(dst []byte, g Group, message string) []byte {
	dst = append(dst, `{"error":`...)
	dst = data.AppendString(dst, f.Labels[g])
	dst = append(dst, `,"message":`...)
	dst = data.AppendString(dst, message)
	return append(dst, '}')
}

// RetryAfter draws the seconds of a Retry-After, at most longest, so that callers who were
// refused together do not come back together.
func RetryAfter(longest int64) []string { return retrySeconds[rand.Int64N(longest)] }

// retrySeconds are the values of the header from one second on.
var retrySeconds = func() (values [retryAfterMax][]string) {
	for i := range values {
		values[i] = []string{strconv.Itoa(i + 1)}
	}
	return values
}()

// errCrossOrigin: the request comes from a page of another site.
var errCrossOrigin = failure.Refuse(failure.ErrForbidden, "requests from pages of other sites are not allowed")

// ErrAborted ends a request whose reply can no longer be written as it should. It
// is not answered: the connection is closed instead.
var ErrAborted = errors.New("reply cannot be finished")

// ErrWatchOver ends Watch when there is nothing more to send. No handler returns it.
var ErrWatchOver = errors.New("the watch is over")
