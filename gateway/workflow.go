package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"troupe/actors/identity"
	"troupe/actors/workflow"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Workflows is what group B needs. Replies belong to the callee and are only
// read. Errors are those of package workflow, wrapped.
type Workflows interface {
	// Create makes an instance. It returns when the instance is durable.
	Create(context.Context, *workflow.CreateRequest) (*workflow.Reply, error)
	// Send hands an event to an instance. It returns when the outcome is durable.
	Send(context.Context, *workflow.EventRequest) (*workflow.Reply, error)
	// Load returns an instance as everything acknowledged before has left it.
	Load(context.Context, *workflow.LoadRequest) (*workflow.Reply, error)
	// Query calls item with the JSON of each instance, in the order of _id; the
	// bytes are valid during the call. An error of item ends the query and is
	// returned.
	Query(ctx context.Context, request *workflow.QueryRequest, item func(instance []byte) error) error
	// Choices lists what the caller may create.
	Choices(caller *identity.Principal) []workflow.Choice
}

// createInstance answers POST workflow/api/v1/create. If-Match has no meaning
// here and is passed over, as RFC 9110 (13.1.1) has it for what has no present
// representation.
func createInstance(x *exchange) error {
	key, err := parseRetryKey(x.r.Header["Idempotency-Key"])
	if err != nil {
		return err
	}
	body, err := parseBody(x.body)
	if err != nil {
		return err
	}
	request, err := parseCreate(body)
	if err != nil {
		return err
	}
	if request.Retry, err = retryOf(x, key, "", body); err != nil {
		return err
	}
	request.Caller = x.caller
	request.WithHistory = !wantsMinimal(x.r.Header["Prefer"])
	reply, err := x.services.Workflows.Create(x.r.Context(), request)
	if err != nil {
		return err
	}
	x.answerInstance(reply)
	return nil
}

// sendEvent answers POST workflow/api/v1/event.
func sendEvent(x *exchange) error {
	key, err := parseRetryKey(x.r.Header["Idempotency-Key"])
	if err != nil {
		return err
	}
	ifMatch, err := parseIfMatch(x.r.Header["If-Match"])
	if err != nil {
		return err
	}
	body, err := parseBody(x.body)
	if err != nil {
		return err
	}
	request, err := parseEvent(body)
	if err != nil {
		return err
	}
	if request.Retry, err = retryOf(x, key, request.ID, body); err != nil {
		return err
	}
	request.Caller = x.caller
	request.IfMatch = ifMatch
	request.WithHistory = !wantsMinimal(x.r.Header["Prefer"])
	reply, err := x.services.Workflows.Send(x.r.Context(), request)
	if err != nil {
		return err
	}
	x.answerInstance(reply)
	return nil
}

// answerInstance answers create and event.
func (x *exchange) answerInstance(reply *workflow.Reply) {
	x.setInstanceHeaders(reply)
	x.out = append(x.out, `{"workflowId":`...)
	x.out = data.AppendString(x.out, reply.WorkflowID)
	x.out = append(x.out, `,"instanceId":`...)
	x.out = data.AppendString(x.out, reply.InstanceID)
	x.out = append(x.out, `,"state":`...)
	x.out = reply.AppendRecord(x.out)
	x.out = append(x.out, '}')
	x.send(http.StatusOK)
}

// loadInstance answers GET workflow/api/v1/instance/{workflowId}/{instanceId}.
func loadInstance(x *exchange) error {
	request := workflow.LoadRequest{
		Caller:      x.caller,
		WorkflowID:  x.params.ByName("workflowId"),
		InstanceID:  x.params.ByName("instanceId"),
		WithHistory: !wantsMinimal(x.r.Header["Prefer"]),
	}
	if !statemachine.IsIdentifier(request.WorkflowID) || !statemachine.IsIdentifier(request.InstanceID) {
		return errNotFound
	}
	reply, err := x.services.Workflows.Load(x.r.Context(), &request)
	if err != nil {
		return err
	}
	x.setInstanceHeaders(reply)
	x.out = append(x.out, `{"state":`...)
	x.out = reply.AppendRecord(x.out)
	x.out = append(x.out, '}')
	x.send(http.StatusOK)
	return nil
}

// setInstanceHeaders sets what every answer with an instance has.
func (x *exchange) setInstanceHeaders(reply *workflow.Reply) {
	h := x.w.Header()
	h["Etag"] = []string{entityTag(reply.Sequence)}
	if !reply.WithHistory {
		h["Preference-Applied"] = valueMinimal
	}
}

// streamBytes is how much of a list is collected before it is sent. A list that
// is smaller goes out whole, and an error before that much is still a status.
const streamBytes = 64 << 10

// queryInstances answers GET workflow/api/v1/instances/{workflowId}.
func queryInstances(x *exchange) error {
	request := workflow.QueryRequest{
		Caller:     x.caller,
		WorkflowID: x.params.ByName("workflowId"),
		Filter:     x.query.Get("filter"),
	}
	if !statemachine.IsIdentifier(request.WorkflowID) {
		return errNotFound
	}
	x.out = append(x.out, `{"instances":[`...)
	first := true
	err := x.services.Workflows.Query(x.r.Context(), &request, func(instance []byte) error {
		if !first {
			x.out = append(x.out, ',')
		}
		first = false
		x.out = append(x.out, instance...)
		if len(x.out) < streamBytes {
			return nil
		}
		return x.flush()
	})
	if err != nil {
		return err // NB: when a piece is out already, refuse cuts the connection
	}
	x.out = append(x.out, `]}`...)
	if x.status == 0 {
		x.send(http.StatusOK)
		return nil
	}
	return x.flush()
}

// flush sends x.out as the next piece of a streamed answer and empties it. The
// first piece decides that the answer is a success: an error after it can only
// cut the connection. A caller who does not read for WriteMax, or has gone, is
// errGone.
func (x *exchange) flush() error {
	if x.status == 0 {
		x.sendHeader(http.StatusOK, -1)
	}
	// A list may take longer in all than one answer may take to write.
	deadline := time.Now().Add(x.server.options.WriteMax)
	if err := http.NewResponseController(x.w).SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errors.Join(errGone, err)
	}
	if _, err := x.w.Write(x.out); err != nil {
		return errors.Join(errGone, err)
	}
	x.out = x.out[:0]
	return nil
}

// listChoices answers GET workflow/api/v1/choices. The list is as long as there
// are definitions, so it is built in one piece.
func listChoices(x *exchange) error {
	x.out = append(x.out, `{"workflows":[`...)
	for i, choice := range x.services.Workflows.Choices(x.caller) {
		if i > 0 {
			x.out = append(x.out, ',')
		}
		x.out = append(x.out, `{"id":`...)
		x.out = data.AppendString(x.out, choice.ID)
		x.out = append(x.out, `,"name":`...)
		x.out = data.AppendString(x.out, choice.Name)
		x.out = append(x.out, '}')
	}
	x.out = append(x.out, `]}`...)
	x.send(http.StatusOK)
	return nil
}
