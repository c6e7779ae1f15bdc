package instances

import (
	"troupe/actors/watch"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
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
	return x.Stream(func(send func(kernel.AppendEvent) error) error {
		return g.Workflows.Watch(x.Request.Context(), &request, func(e watch.Event) error {
			return send(func(dst []byte) ([]byte, error) { return AppendWatchEvent(dst, e), nil })
		})
	})
}

// AppendWatchEvent appends an event as it stands in the stream (WHATWG HTML,
// "Server-sent events"). Its id lets a client
// that reconnects continue behind it.
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
