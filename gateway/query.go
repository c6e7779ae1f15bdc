package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// streamBytes is how much of a list is collected before it is sent. A list that
// is smaller goes out whole, and an error before that much is still a status.
const streamBytes = 64 << 10

// queryInstances answers GET workflow/api/v1/instances/{workflowId}. Without
// limit the list is streamed. With it the page is collected first, because its
// header Link and its member next are known only at its end.
func queryInstances(x *exchange) error {
	request, err := parseQueryRequest(x.query)
	if err != nil {
		return err
	}
	mayManage := x.caller.Has(identity.Workflows)
	if slices.Contains(request.Fields, fieldPrivate) && !mayManage {
		return parse.Malformed(`the query parameter "fields" can name %q only for holders of the privilege %s`, fieldPrivate, identity.Workflows)
	}
	if request.Explain && !mayManage {
		return failure.Needs(identity.Workflows)
	}
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	request.Caller, request.WorkflowID = x.caller, x.params.ByName("workflowId")
	if slices.Contains(request.Fields, fieldTitle) {
		request.Languages = x.languages()
	}
	x.out = append(x.out, `{"instances":[`...)
	first := true
	end, err := x.services.Workflows.Query(x.r.Context(), request, func(instance []byte) error {
		if !first {
			x.out = append(x.out, ',')
		}
		first = false
		x.out = append(x.out, instance...)
		if request.Limit > 0 || len(x.out) < streamBytes {
			return nil
		}
		return x.flush()
	})
	x.renewWriteTime()
	if err != nil {
		return err // NB: when a piece was sent, refuse closes the connection
	}
	if err := x.appendQueryEnd(request, end); err != nil {
		return err
	}
	return x.sendRest()
}

// listStream sends a JSON array of any length in pieces.
type listStream struct {
	x     *exchange
	begun bool
}

func (x *exchange) beginList() *listStream {
	x.out = append(x.out, '[')
	return &listStream{x: x}
}

// beforeElement puts the comma before the next element; the caller appends that to x.out
// and calls afterElement.
func (a *listStream) beforeElement() {
	if a.begun {
		a.x.out = append(a.x.out, ',')
	}
	a.begun = true
}

// afterElement sends what there is when it is enough for a piece.
func (a *listStream) afterElement() error {
	if len(a.x.out) < streamBytes {
		return nil
	}
	return a.x.flush()
}

// end sends the rest; err is why there is less than all.
func (a *listStream) end(err error) error {
	a.x.renewWriteTime()
	if err != nil {
		return err // NB: when a piece was sent, refuse closes the connection
	}
	a.x.out = append(a.x.out, ']')
	return a.x.sendRest()
}

// appendJSON appends a value of package api.
func (x *exchange) appendJSON(value any) (err error) {
	x.out, err = encode(x.out, value)
	return err
}

// encode appends a value of package api.
func encode(dst []byte, value any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return dst, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// answerJSON answers with a value of package api.
func (x *exchange) answerJSON(value any) error {
	if err := x.appendJSON(value); err != nil {
		return err
	}
	x.send(http.StatusOK)
	return nil
}

// sendRest sends x.out as the last piece of an answer, or as the whole.
func (x *exchange) sendRest() error {
	if x.status == 0 {
		x.send(http.StatusOK)
		return nil
	}
	return x.flush()
}

// appendQueryEnd appends what follows the last instance, and sets the header
// that goes with it.
func (x *exchange) appendQueryEnd(request *query.Request, end *query.End) error {
	x.out = append(x.out, ']')
	if request.Limit > 0 {
		x.appendNext(end.Next)
	}
	if request.Count {
		x.out = append(x.out, `,"count":`...)
		x.out = strconv.AppendInt(x.out, end.Count, 10)
	}
	if request.Explain {
		x.out = append(x.out, `,"explain":`...)
		if err := x.appendJSON(explainOf(end.Explain)); err != nil {
			return err
		}
	}
	x.out = append(x.out, '}')
	return nil
}

func explainOf(e *query.Explain) api.Explain {
	out := api.Explain{Matched: e.Matched, Considered: []api.Considered{}}
	all := e.Plan != ""
	if all {
		out.Index, out.Plan, out.KeysRead, out.RecordsRead, out.Milliseconds = e.Index, &e.Plan, &e.KeysRead, &e.RecordsRead, &e.Milliseconds
	}
	for i := range e.Considered {
		c := &e.Considered[i]
		shown := api.Considered{Index: c.Index}
		if all {
			shown.Keys, shown.AtLeast = &c.Keys, &c.AtLeast
		}
		out.Considered = append(out.Considered, shown)
	}
	return out
}

// appendNext appends the member next of a page. When there is a next page it
// sets the header Link too.
func (x *exchange) appendNext(cursor string) {
	if cursor == "" {
		x.out = append(x.out, `,"next":null`...)
		return
	}
	x.out = append(x.out, `,"next":`...)
	x.out = data.AppendString(x.out, cursor)
	x.w.Header()["Link"] = []string{parse.NextLink(x.r.URL.Path, x.route.query, x.query, cursor)}
}

// listHistory answers GET
// workflow/api/v1/instance/{workflowId}/{instanceId}/history.
func listHistory(x *exchange) error {
	request := message.History{Caller: x.caller}
	var err error
	if request.Limit, err = parse.Limit(x.query, parse.HistoryPageDefault); err != nil {
		return err
	}
	if request.Cursor, err = parse.Cursor(x.query); err != nil {
		return err
	}
	fields, err := parse.Choice(x.query, "fields", "data")
	if err != nil {
		return err
	}
	request.WithData = fields != ""
	by, err := parse.Choice(x.query, "order", ascending, descending)
	if err != nil {
		return err
	}
	request.Descending = by == descending
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	request.WorkflowID, request.InstanceID = x.params.ByName("workflowId"), x.params.ByName("instanceId")
	page, err := x.services.Workflows.History(x.r.Context(), &request)
	if err != nil {
		return err
	}
	x.out = append(x.out, `{"history":[`...)
	x.out = append(x.out, page.Entries...)
	x.out = append(x.out, ']')
	x.appendNext(page.Next)
	x.out = append(x.out, '}')
	x.send(http.StatusOK)
	return nil
}

// renewWriteTime gives what is written next its own WriteMax.
func (x *exchange) renewWriteTime() {
	deadline := time.Now().Add(x.server.options.WriteMax)
	_ = http.NewResponseController(x.w).SetWriteDeadline(deadline) // writing shows the same error
}

// flush sends x.out as the next piece of a streamed answer and empties it. The
// first piece decides that the answer is a success: an error after it can only
// close the connection. A caller who does not read for WriteMax, or has gone, is
// errAborted.
func (x *exchange) flush() error {
	if x.status == 0 {
		x.sendHeader(http.StatusOK, -1)
	}
	// A list may take longer in all than one answer may take to write.
	x.renewWriteTime()
	if _, err := x.w.Write(x.out); err != nil {
		return errors.Join(errAborted, err)
	}
	x.out = x.out[:0]
	return nil
}
