package instances

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"troupe/actors/audit"
	"troupe/actors/changefeed"
	"troupe/actors/export"
	"troupe/actors/failure"
	"troupe/actors/watch"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// watchInstances answers GET workflow/api/v1/watch/{workflowId} and, with one
// instance, GET workflow/api/v1/watch/{workflowId}/{instanceId}.
func (g *Group) watchInstances(x *kernel.Exchange) error {
	request := watch.Request{Caller: x.Caller, Reauthorize: x.Reauthorize, Filter: x.Query.Get("filter")}
	var err error
	if request.LastEventID, err = parse.LastEventID(x.Request.Header["Last-Event-Id"]); err != nil {
		return err
	}
	// NB: an empty instance id would be all instances.
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	request.WorkflowID, request.InstanceID = x.Params.ByName("workflowId"), x.Params.ByName("instanceId")
	action, target := audit.InstanceList, request.WorkflowID
	if request.InstanceID != "" {
		action, target = audit.InstanceRead, target+"/"+request.InstanceID
	}
	return x.Stream(func(send func(kernel.AppendEvent) error) error {
		return g.Watches.Watch(x.Request.Context(), &request, func(e watch.Event) error {
			if request.ByPrivilege && e.Kind == watch.Opened {
				if err := x.RecordRead(action, target); err != nil {
					return err
				}
			}
			return send(func(dst []byte) ([]byte, error) { return AppendWatchEvent(dst, e), nil })
		})
	})
}

// AppendWatchEvent appends an event as it stands in the stream (WHATWG HTML, "Server-sent events"). Its id lets a
// client that reconnects continue behind it.
func AppendWatchEvent(dst []byte, e watch.Event) []byte {
	switch e.Kind {
	case watch.Opened:
		dst = append(dst, kernel.StreamOpening...)
		dst = appendField(dst, "id", e.ID)
	case watch.Entry:
		dst = appendField(dst, "id", e.ID)
		dst = append(dst, "event: entry\n"...)
		dst = kernel.AppendData(dst, e.Data)
	case watch.Lost:
		dst = append(dst, "event: lost\n"...)
		dst = kernel.AppendData(dst, e.Data)
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

// listChanges answers GET workflow/api/v1/changes.
func (g *Group) listChanges(x *kernel.Exchange) error {
	page, err := g.readChanges(x, &changefeed.Request{})
	if err != nil {
		return err
	}
	appendChanges(x, page)
	return nil
}

// exportChanges answers GET workflow/api/v1/export. Who runs the service gets all that there is.
func (g *Group) exportChanges(x *kernel.Exchange) error {
	page, err := g.readChanges(x, &changefeed.Request{WithData: true, Every: x.Caller == kernel.Operator})
	if err != nil {
		return err
	}
	x.Out = append(x.Out, `{"rows":[`...)
	for n, e := range page.Changes {
		if n > 0 {
			x.Out = append(x.Out, ',')
		}
		x.Out = append(x.Out, export.RowOf(e).Text...)
	}
	endPage(x, page)
	return nil
}

// readChanges reads a page of the feed of changes. One that waits counts as a watcher meanwhile, and no longer as a
// request in flight.
func (g *Group) readChanges(x *kernel.Exchange, request *changefeed.Request) (*changefeed.Page, error) {
	q := parse.Parameters{Values: x.Query}
	request.Caller, request.Limit, request.Wait, request.Since = x.Caller, q.Limit(parse.PageDefault), parseWait(&q), q.Text("since")
	if !parse.IsVisible(request.Since) {
		q.Refuse(`the query parameter "since" is not valid`)
	}
	if request.WorkflowID = q.Text("workflowId"); q.Err != nil {
		return nil, q.Err
	}
	if request.WorkflowID != "" && !statemachine.IsIdentifier(request.WorkflowID) {
		return nil, failure.ErrNotFound
	}
	waits := false
	request.Waiting = func() error {
		if err := x.AdmitWatcher(); err != nil {
			return err
		}
		waits = true
		x.EndAdmission()
		return nil
	}
	page, err := g.Changes.Changes(x.Request.Context(), request)
	if waits {
		x.ReleaseWatcher()
		x.RenewWriteTime()
	}
	if request.ByPrivilege {
		x.NoteRead(audit.InstanceList, cmp.Or(request.WorkflowID, "*"))
	}
	return page, err
}

// appendChanges sends a page.
func appendChanges(x *kernel.Exchange, page *changefeed.Page) {
	x.Out = append(x.Out, `{"changes":[`...)
	for n, e := range page.Changes {
		if n > 0 {
			x.Out = append(x.Out, ',')
		}
		x.Out = append(x.Out, `{"workflowId":`...)
		x.Out = data.AppendString(x.Out, e.Workflow)
		x.Out = append(x.Out, `,"instanceId":"`...)
		x.Out = append(x.Out, e.Name...)
		x.Out = append(x.Out, `","sequence":`...)
		x.Out = strconv.AppendUint(x.Out, e.Sequence, 10)
		x.Out = append(x.Out, `,"entry":`...)
		x.Out = append(x.Out, e.Text...)
		x.Out = append(x.Out, `,"states":`...)
		x.Out = append(x.Out, e.States...)
		x.Out = append(x.Out, '}')
	}
	endPage(x, page)
}

func endPage(x *kernel.Exchange, page *changefeed.Page) {
	x.Out = append(x.Out, `],"next":`...)
	x.Out = data.AppendString(x.Out, page.Next)
	x.Out = append(x.Out, '}')
	x.Send(http.StatusOK)
}

// parseWait parses wait: 0 to changefeed.WaitMax in seconds, in decimal digits without leading zeros.
func parseWait(q *parse.Parameters) time.Duration {
	text := q.Text("wait")
	if text == "" || text == "0" {
		return 0
	}
	n, err := strconv.Atoi(text)
	most := int(changefeed.WaitMax / time.Second)
	// NB: Atoi accepts signs and leading zeros.
	if err != nil || n < 1 || n > most || text[0] < '1' || text[0] > '9' {
		q.Refuse(`the query parameter "wait" must be a number of seconds from 0 to %d`, most)
	}
	return time.Duration(n) * time.Second
}
