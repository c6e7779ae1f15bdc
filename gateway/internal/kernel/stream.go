package kernel

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"troupe/actors/failure"
)

// A watcher gets what is committed as server-sent events:
//
//	in flight ──► open  ──► ended
//	    │           │         └ by the caller, by Stop, by a lost right,
//	    │           │           or closed because nobody reads
//	    │           └ counted as a watcher; Stop does not wait for it
//	    └ counted as any request; a refusal is a status

// StreamOpening begins every stream. It makes clients reconnect soon after the connection ends.
const StreamOpening = "retry: 2000\n"

var (
	valueEventStream = []string{"text/event-stream"}
	valueNo          = []string{"no"}
)

// AppendEvent appends an event as it stands in a stream.
type AppendEvent func(dst []byte) ([]byte, error)

// Stream runs a watch, which calls send for each event, and answers with what it sends. The header of the answer leaves with the first
// event; an error of watch before that is the answer.
func (x *Exchange) Stream(watch func(send func(AppendEvent) error) error) error {
	if err := x.AdmitWatcher(); err != nil {
		return err
	}
	defer x.ReleaseWatcher()
	defer x.followRights()()
	var sendErr error
	err := watch(func(e AppendEvent) error {
		sendErr = x.sendEvent(e)
		return sendErr
	})
	if sendErr != nil {
		return x.endStream(sendErr)
	}
	return x.endStream(x.tellRights(x.rightsError(err)))
}

// AdmitWatcher counts a watcher, or refuses it because there are too many.
func (x *Exchange) AdmitWatcher() error {
	s := x.Kernel
	ofUser, ofAll := x.Usage.Watchers.Add(1), s.watchers.Add(1)
	if ofUser > s.Limits.UserWatchers || ofAll > s.Options.WatchersMax {
		x.ReleaseWatcher()
		s.metrics.watchersFull.Add(1)
		return failure.ErrBusy
	}
	return nil
}

// ReleaseWatcher ends a watcher that AdmitWatcher has counted.
func (x *Exchange) ReleaseWatcher() {
	x.Kernel.watchers.Add(-1)
	x.Usage.Watchers.Add(-1)
}

// WaitsPerWatcher is how many waits there may be for each watcher: nothing is sent to a wait until its end.
const WaitsPerWatcher = 10

// AdmitWait counts a request that waits for its answer, or refuses it because there are too many. The bounds are those of
// watchers times WaitsPerWatcher.
func (x *Exchange) AdmitWait() error {
	s := x.Kernel
	ofUser, ofAll := x.Usage.waits.Add(1), s.waits.Add(1)
	if ofUser > WaitsPerWatcher*s.Limits.UserWatchers || ofAll > WaitsPerWatcher*s.Options.WatchersMax {
		x.ReleaseWait()
		s.metrics.watchersFull.Add(1)
		return failure.ErrBusy
	}
	return nil
}

// ReleaseWait ends a wait that AdmitWait has counted.
func (x *Exchange) ReleaseWait() {
	x.Kernel.waits.Add(-1)
	x.Usage.waits.Add(-1)
}

// sendEvent sends one event to the watcher. An error ends the watch.
func (x *Exchange) sendEvent(e AppendEvent) (err error) {
	if x.Status == 0 {
		x.beginStream()
		if x.Request.Method == http.MethodHead {
			return ErrWatchOver
		}
	}
	if x.Out, err = e(x.Out[:0]); err != nil {
		return err
	}
	if err := x.Flush(); err != nil {
		return err
	}
	return x.Push()
}

// Push sends what was written. Without it net/http sends nothing until its buffer is full.
func (x *Exchange) Push() error {
	if err := http.NewResponseController(x.Writer).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errors.Join(ErrAborted, err)
	}
	return nil
}

// beginStream sends the header of a stream. From here on the request is a watcher and no longer in flight. ReadMax does
// not end it: when a request has been read, net/http goes on reading without a limit, to notice a caller who leaves.
func (x *Exchange) beginStream() {
	h := x.Writer.Header()
	x.Kernel.setCommonHeaders(h, x.Request)
	h["Vary"] = valuesVary[x.Vary]
	h["Content-Type"] = valueEventStream
	h["X-Accel-Buffering"] = valueNo // nginx would collect events until a buffer is full
	x.RenewWriteTime()
	x.Status = http.StatusOK
	x.Writer.WriteHeader(http.StatusOK)
	x.EndAdmission()
}

// endStream turns the end of Watch into the error that the handler returns.
func (x *Exchange) endStream(err error) error {
	x.RenewWriteTime() // the last chunk is still to come
	switch {
	case x.Status == 0 && (err == nil || errors.Is(err, ErrWatchOver)):
		return failure.ErrUnavailable // the server stopped before the stream began
	case x.Status == 0, err == nil:
		return err
	case errors.Is(err, ErrWatchOver), errors.Is(err, failure.ErrUnauthorized):
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err // NB: such a write ends the request's context too
	case errors.Is(err, ErrAborted), x.Request.Context().Err() != nil:
		return nil // the caller has ended the stream
	}
	return err
}

// AppendData appends JSON as the data of an event. A line end in it, which can
// only be white space, becomes a new data line; as it is, it would end the event.
func AppendData(dst, json []byte) []byte {
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

// rightsEvery is how often an open stream asks whether its caller may go on, and whether people are still called what they were: also while there is
// nothing to tell.
const rightsEvery = 500 * time.Millisecond

// appendAskAgain tells who watches to ask for everything again, because what holds for them has changed.
func appendAskAgain(dst []byte) ([]byte, error) {
	return append(dst, "event: lost\ndata: {\"message\":\"rights or names have changed; read again\"}\n\n"...), nil
}

// followRights gives the request a context that ends when its caller loses the credential, has other rights, or somebody has another name. Its cause says
// which: failure.ErrUnauthorized or ErrWatchOver. release waits until nothing asks any more.
func (x *Exchange) followRights() (release func()) {
	request := x.Request
	ctx, end := context.WithCancelCause(request.Context())
	x.Request = request.WithContext(ctx)
	names := x.Kernel.names.number(x.Services.Users)
	var asking sync.WaitGroup
	asking.Go(func() {
		ticks := time.NewTicker(rightsEvery)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
			_, err := x.Reauthorize()
			if err == nil && x.Kernel.names.number(x.Services.Users) != names {
				err = ErrWatchOver
			}
			if err != nil {
				end(err)
			}
		}
	})
	return func() {
		end(nil)
		asking.Wait()
		x.Request = request
	}
}

// isOverByRights reports whether an error ends a stream because other rights or names hold now.
func isOverByRights(err error) bool {
	return errors.Is(err, ErrWatchOver) || errors.Is(err, failure.ErrUnauthorized)
}

// rightsError is what ended a watch: what followRights says, before what came of it.
func (x *Exchange) rightsError(err error) error {
	if cause := context.Cause(x.Request.Context()); err != nil && isOverByRights(cause) {
		return cause
	}
	return err
}

// tellRights asks who watches to read again when the stream ends by rights.
func (x *Exchange) tellRights(err error) error {
	if x.Status == 0 || x.Request.Method == http.MethodHead || !isOverByRights(err) {
		return err
	}
	return errors.Join(x.sendEvent(appendAskAgain), err)
}
