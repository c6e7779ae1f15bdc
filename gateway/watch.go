package gateway

import (
	"errors"
	"net/http"
	"os"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/watch"
	"troupe/gateway/internal/parse"
)

// A watcher gets what is committed as server-sent events:
//
//	in flight ──► open  ──► ended
//	    │           │         └ by the caller, by Stop, by a lost right,
//	    │           │           or closed because nobody reads
//	    │           └ counted as a watcher; Stop does not wait for it
//	    └ counted as any request; a refusal is a status

// streamOpening begins every stream. It makes clients reconnect soon after the
// connection ends.
const streamOpening = "retry: 2000\n"

var (
	valueEventStream = []string{"text/event-stream"}
	valueNo          = []string{"no"}
)

// errWatchOver ends Watch when there is nothing more to send. No handler returns it.
var errWatchOver = errors.New("the watch is over")

// watchInstances answers GET workflow/api/v1/watch/{workflowId} and, with one
// instance, GET workflow/api/v1/watch/{workflowId}/{instanceId}.
func watchInstances(x *exchange) error {
	request := watch.Request{Caller: x.caller, Reauthorize: x.reauthorize, Filter: x.query.Get("filter")}
	var err error
	if request.LastEventID, err = parse.LastEventID(x.r.Header["Last-Event-Id"]); err != nil {
		return err
	}
	// NB: an empty instance id would be all instances.
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	request.WorkflowID, request.InstanceID = x.params.ByName("workflowId"), x.params.ByName("instanceId")
	return x.stream(func(send func(appendEvent) error) error {
		return x.services.Workflows.Watch(x.r.Context(), &request, func(e watch.Event) error {
			return send(func(dst []byte) ([]byte, error) { return appendWatchEvent(dst, e), nil })
		})
	})
}

// appendEvent appends an event as it stands in a stream.
type appendEvent func(dst []byte) ([]byte, error)

// stream runs a watch, which calls send for each event, and answers with what it sends. The header of the answer leaves with the first
// event; an error of watch before that is the answer.
func (x *exchange) stream(watch func(send func(appendEvent) error) error) error {
	if err := x.admitWatcher(); err != nil {
		return err
	}
	defer x.releaseWatcher()
	defer x.followRights(rightsEvery)()
	var sendErr error
	err := watch(func(e appendEvent) error {
		sendErr = x.sendEvent(e)
		return sendErr
	})
	if sendErr != nil {
		return x.endStream(sendErr)
	}
	return x.endStream(x.tellRights(x.rightsError(err)))
}

// admitWatcher counts a watcher, or refuses it because there are too many.
func (x *exchange) admitWatcher() error {
	s := x.server
	ofUser, ofAll := x.usage.watchers.Add(1), s.watchers.Add(1)
	if ofUser > s.limits.userWatchers || ofAll > s.options.WatchersMax {
		x.releaseWatcher()
		s.metrics.watchersFull.Add(1)
		return failure.ErrBusy
	}
	return nil
}

// releaseWatcher ends a watcher that admitWatcher has counted.
func (x *exchange) releaseWatcher() {
	x.server.watchers.Add(-1)
	x.usage.watchers.Add(-1)
}

// sendEvent sends one event to the watcher. An error ends the watch.
func (x *exchange) sendEvent(e appendEvent) (err error) {
	if x.status == 0 {
		x.beginStream()
		if x.r.Method == http.MethodHead {
			return errWatchOver
		}
	}
	if x.out, err = e(x.out[:0]); err != nil {
		return err
	}
	if err := x.flush(); err != nil {
		return err
	}
	return x.push()
}

// push sends what was written. Without it net/http sends nothing until its buffer is full.
func (x *exchange) push() error {
	if err := http.NewResponseController(x.w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errors.Join(errAborted, err)
	}
	return nil
}

// beginStream sends the header of a stream. From here on the request is a
// watcher and no longer in flight. ReadMax does not end it: when a request has
// been read, net/http goes on reading without a limit, to notice a caller who
// leaves.
func (x *exchange) beginStream() {
	h := x.w.Header()
	x.server.setCommonHeaders(h, x.r)
	x.addVaryLanguage(h)
	h["Content-Type"] = valueEventStream
	h["X-Accel-Buffering"] = valueNo // nginx would collect events until a buffer is full
	x.renewWriteTime()
	x.status = http.StatusOK
	x.w.WriteHeader(http.StatusOK)
	x.endAdmission()
}

// reauthorize is called for each event: a stream must not outlive its credential. It
// also ends when the caller's rights have changed, because the filter was checked
// with them; clients reconnect and are then checked with the new rights.
func (x *exchange) reauthorize() (*identity.Principal, error) {
	if x.caller == operator {
		return operator, nil // who has shown no credential loses none
	}
	now, err := x.identify(x.kind)
	if err != nil {
		return nil, err
	}
	if now != x.caller && !sameRights(now, x.caller) {
		return nil, errWatchOver
	}
	return now, nil
}

func sameRights(a, b *identity.Principal) bool {
	return a.ID == b.ID && slices.Equal(a.Roles, b.Roles) && slices.Equal(a.Privileges, b.Privileges)
}

// endStream turns the end of Watch into the error that the handler returns.
func (x *exchange) endStream(err error) error {
	x.renewWriteTime() // the last chunk is still to come
	switch {
	case x.status == 0 && (err == nil || errors.Is(err, errWatchOver)):
		return failure.ErrUnavailable // the server stopped before the stream began
	case x.status == 0, err == nil:
		return err
	case errors.Is(err, errWatchOver), errors.Is(err, failure.ErrUnauthorized):
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err // NB: such a write ends the request's context too
	case errors.Is(err, errAborted), x.r.Context().Err() != nil:
		return nil // the caller has ended the stream
	}
	return err
}

// appendWatchEvent appends an event as it stands in the stream (WHATWG HTML,
// "Server-sent events"). Its id lets a client
// that reconnects continue behind it.
func appendWatchEvent(dst []byte, e watch.Event) []byte {
	switch e.Kind {
	case watch.Opened:
		dst = append(dst, streamOpening...)
		dst = appendField(dst, "id", e.ID)
	case watch.Entry:
		dst = appendField(dst, "id", e.ID)
		dst = append(dst, "event: entry\n"...)
		dst = appendData(dst, e.Data)
	case watch.Lost:
		dst = append(dst, "event: lost\n"...)
		dst = appendData(dst, e.Data)
		dst = appendField(dst, "id", e.ID)
	case watch.Heartbeat:
		dst = append(dst, ": beat\n"...)
		if e.ID != "" {
			dst = appendField(dst, "id", e.ID)
		}
	}
	return append(dst, '\n')
}

func appendField(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, '\n')
}

// appendData appends JSON as the data of an event. A line end in it, which can
// only be white space, becomes a new data line; as it is, it would end the event.
func appendData(dst, json []byte) []byte {
	dst = append(dst, "data: "...)
	for _, c := range json {
		if c == '\n' || c == '\r' {
			dst = append(dst, "\ndata: "...)
			continue
		}
		dst = append(dst, c)
	}
	return append(dst, '\n')
}
