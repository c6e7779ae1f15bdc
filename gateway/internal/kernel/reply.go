package kernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"troupe/actors/audit"
	"troupe/actors/message"
	"troupe/gateway/internal/parse"
	"troupe/gateway/leader"
	"troupe/statemachine/data"
)

// AnswerInstance answers create and event.
func (x *Exchange) AnswerInstance(reply *message.Reply) {
	x.SetInstanceHeaders(reply)
	if reply.ByPrivilege {
		x.noted = noted{action: audit.InstanceRead, target: reply.WorkflowID + "/" + reply.InstanceID, read: true, done: true}
	}
	x.Out = append(x.Out, `{"workflowId":`...)
	x.Out = data.AppendString(x.Out, reply.WorkflowID)
	x.Out = append(x.Out, `,"instanceId":`...)
	x.Out = data.AppendString(x.Out, reply.InstanceID)
	x.AppendCreated(reply)
	x.Out = append(x.Out, `,"state":`...)
	x.Out = reply.AppendRecord(x.Out)
	x.Out = append(x.Out, '}')
	x.Send(http.StatusOK)
}

// AppendCreated appends whether an event has created its instance, where the caller named that by its key.
func (x *Exchange) AppendCreated(reply *message.Reply) {
	if reply.ByKey {
		x.Out = strconv.AppendBool(append(x.Out, `,"created":`...), reply.Created)
	}
}

// SetInstanceHeaders sets what every answer with an instance has.
func (x *Exchange) SetInstanceHeaders(reply *message.Reply) {
	x.SetLeader(reply.InstanceID)
	h := x.Writer.Header()
	h["Etag"] = []string{parse.EntityTag(reply.Sequence)}
	if !reply.WithHistory {
		h["Preference-Applied"] = valueMinimal
	}
	if reply.HistoryFrom > 1 {
		h["Link"] = []string{"<" + x.Kernel.Options.BasePath + "/workflow/api/v1/instance/" + reply.WorkflowID + "/" + reply.InstanceID + `/history>; rel="prev"`}
	}
}

// SetLeader says which node of a cluster leads an instance, and which one was asked.
func (x *Exchange) SetLeader(instance string) {
	if x.Services.Locate == nil {
		return
	}
	place, ok := x.Services.Locate(instance)
	if !ok {
		return
	}
	if x.Sender != nil {
		place.Self = x.Sender.node
	}
	x.Writer.Header()[leader.Header] = []string{place.String()}
}

// Languages returns the languages of the reader, the preferred one first, and notes that the answer depends on them.
func (x *Exchange) Languages() []string {
	x.Vary |= VaryLanguage
	return parse.AcceptLanguage(x.Request.Header["Accept-Language"])
}

// StreamBytes is how much of a list is collected before it is sent. A list that
// is smaller goes out whole, and an error before that much is still a status.
const StreamBytes = 64 << 10

// ListStream sends a JSON array of any length in pieces.
type ListStream struct {
	x     *Exchange
	begun bool
}

// BeginList begins an answer that is a list.
func (x *Exchange) BeginList() *ListStream {
	x.Out = append(x.Out, '[')
	return &ListStream{x: x}
}

// BeforeElement puts the comma before the next element; the caller appends that to x.Out and calls AfterElement.
func (a *ListStream) BeforeElement() {
	if a.begun {
		a.x.Out = append(a.x.Out, ',')
	}
	a.begun = true
}

// AfterElement sends what there is when it is enough for a piece.
func (a *ListStream) AfterElement() error {
	if len(a.x.Out) < StreamBytes {
		return nil
	}
	return a.x.Flush()
}

// End sends the rest; err is why there is less than all.
func (a *ListStream) End(err error) error {
	a.x.RenewWriteTime()
	if err != nil {
		return err // NB: when a piece was sent, writeError closes the connection
	}
	a.x.Out = append(a.x.Out, ']')
	return a.x.SendRest()
}

// AppendJSON appends a value of package api.
func (x *Exchange) AppendJSON(value any) (err error) {
	x.Out, err = Encode(x.Out, value)
	return err
}

// Encode appends a value of package api.
func Encode(dst []byte, value any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return dst, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// AnswerJSON answers with a value of package api.
func (x *Exchange) AnswerJSON(value any) error {
	if err := x.AppendJSON(value); err != nil {
		return err
	}
	x.Send(http.StatusOK)
	return nil
}

// SendRest sends x.Out as the last piece of an answer, or as the whole.
func (x *Exchange) SendRest() error {
	if x.Status == 0 {
		x.Send(http.StatusOK)
		return nil
	}
	return x.Flush()
}

// RenewWriteTime gives what is written next its own WriteMax.
func (x *Exchange) RenewWriteTime() {
	deadline := time.Now().Add(x.Kernel.Options.WriteMax)
	_ = http.NewResponseController(x.Writer).SetWriteDeadline(deadline) // writing shows the same error
}

// Flush sends x.Out as the next piece of a streamed answer and empties it. The first piece decides that the answer is a
// success: an error after it can only close the connection. A caller who does not read for WriteMax, or has gone, is
// ErrAborted.
func (x *Exchange) Flush() error {
	if x.Status == 0 {
		if err := x.record(); err != nil {
			return err
		}
		x.sendHeader(http.StatusOK, -1)
	}
	// A list may take longer in all than one answer may take to write.
	x.RenewWriteTime()
	if _, err := x.Writer.Write(x.Out); err != nil {
		return errors.Join(ErrAborted, err)
	}
	x.Out = x.Out[:0]
	return nil
}

// AppendNext appends the member next of a page. When there is a next page it sets the header Link too.
func (x *Exchange) AppendNext(cursor string) {
	if cursor == "" {
		x.Out = append(x.Out, `,"next":null`...)
		return
	}
	x.Out = append(x.Out, `,"next":`...)
	x.Out = data.AppendString(x.Out, cursor)
	x.Writer.Header()["Link"] = []string{parse.NextLink(x.Request.URL.Path, x.Route.Query, x.Query, cursor)}
}

// LinkNext sets the header of a page that is not the last one, and returns its member next.
func (x *Exchange) LinkNext(cursor string) *string {
	if cursor == "" {
		return nil
	}
	x.Writer.Header()["Link"] = []string{parse.NextLink(x.Request.URL.Path, x.Route.Query, x.Query, cursor)}
	return &cursor
}
