package kernel

import (
	"net/http"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// AnswerInstance answers create and event.
func (x *Exchange) AnswerInstance(reply *message.Reply) {
	x.SetInstanceHeaders(reply)
	x.Out = append(x.Out, `{"workflowId":`...)
	x.Out = data.AppendString(x.Out, reply.WorkflowID)
	x.Out = append(x.Out, `,"instanceId":`...)
	x.Out = data.AppendString(x.Out, reply.InstanceID)
	x.Out = append(x.Out, `,"state":`...)
	x.Out = reply.AppendRecord(x.Out)
	x.Out = append(x.Out, '}')
	x.Send(http.StatusOK)
}

// SetInstanceHeaders sets what every answer with an instance has.
func (x *Exchange) SetInstanceHeaders(reply *message.Reply) {
	h := x.Writer.Header()
	h["Etag"] = []string{parse.EntityTag(reply.Sequence)}
	if !reply.WithHistory {
		h["Preference-Applied"] = valueMinimal
	}
	if reply.HistoryFrom > 1 {
		h["Link"] = []string{"<" + x.Kernel.Options.BasePath + "/workflow/api/v1/instance/" + reply.WorkflowID + "/" + reply.InstanceID + `/history>; rel="prev"`}
	}
}

// CheckIdentifiers demands that all parameters of the path are valid identifiers.
// Nothing has an invalid one, so it is failure.ErrNotFound.
func (x *Exchange) CheckIdentifiers() error {
	for _, param := range x.Params {
		if !statemachine.IsIdentifier(param.Value) {
			return failure.ErrNotFound
		}
	}
	return nil
}

// InstanceRequest is for the instance that the path names.
func (x *Exchange) InstanceRequest() (*message.Load, error) {
	of := &message.Load{Caller: x.Caller, WorkflowID: x.Params.ByName("workflowId"), InstanceID: x.Params.ByName("instanceId")}
	return of, x.CheckIdentifiers()
}
