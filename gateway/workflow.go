package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/actors/workflow/batch"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Workflows is what group B needs. Replies belong to the callee and are only
// read. Errors are those of package failure.
type Workflows interface {
	Instances
	Batches
	Lists
	Watches
	Operations
	Tasks
}

// Instances has the operations on one instance.
type Instances interface {
	// Create makes an instance. It returns when the instance is durable.
	Create(context.Context, *message.Create) (*message.Reply, error)
	// Send hands an event to an instance. It returns when the outcome is durable.
	Send(context.Context, *message.Event) (*message.Reply, error)
	// Load returns an instance as everything acknowledged before has left it.
	Load(context.Context, *message.Load) (*message.Reply, error)
	// Events returns what the caller may send to an instance now.
	Events(context.Context, *message.Load) (*message.Events, error)
	// History returns a page of an instance's history.
	History(context.Context, *message.History) (*message.Page, error)
}

// Batches has what many creates and events in one request need.
type Batches interface {
	batch.Router
	// Backlog is how many bytes wait for the store.
	Backlog() int64
	// InFlightMax is how many requests the workflows take at once.
	InFlightMax() int
	// KeepKey remembers durably that a key of the caller's stands for a batch.
	KeepKey(caller *identity.Principal, key message.Retry) error
}

// Lists has the operations on many.
type Lists interface {
	// Query calls item with the JSON of each instance, in the order that was
	// asked for; the bytes are valid during the call. An error of item ends the
	// query and is returned.
	Query(ctx context.Context, request *query.Request, item func(instance []byte) error) (*query.End, error)
	// Choices lists what the caller may create.
	Choices(caller *identity.Principal) []catalog.Choice
}

// Watches streams what is committed.
type Watches interface {
	// Watch calls deliver with watch.Opened and then with each event, one call after
	// the other, at least every 15 s and each after request.Reauthorize, until one of
	// the two returns an error, ctx ends, or StopWatching is called, which is
	// nil. An error before the first call of deliver is a refusal. Neither is called
	// any more when Watch has returned.
	Watch(ctx context.Context, request *watch.Request, deliver func(watch.Event) error) error
	// Changes returns a page of what was committed behind a cursor, as changefeed.Service says.
	Changes(context.Context, *changefeed.Request) (*changefeed.Page, error)
	// StopWatching ends all calls of Watch, and refuses new ones. Calls of Changes wait no more.
	StopWatching()
}

// createInstance answers POST workflow/api/v1/create. If-Match has no meaning
// here and is ignored, as RFC 9110 (13.1.1) has it for what has no present
// representation.
func createInstance(x *exchange) error {
	key, body, err := x.keyedBody()
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
	request.WithHistory = !parse.PrefersMinimal(x.r.Header["Prefer"])
	reply, err := x.services.Workflows.Create(x.r.Context(), request)
	if err != nil {
		return err
	}
	x.answerInstance(reply)
	return nil
}

// sendEvent answers POST workflow/api/v1/event.
func sendEvent(x *exchange) error {
	key, err := parse.IdempotencyKey(x.r.Header["Idempotency-Key"])
	if err != nil {
		return err
	}
	ifMatch, err := parse.IfMatch(x.r.Header["If-Match"])
	if err != nil {
		return err
	}
	body, err := parse.Body(x.body)
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
	request.WithHistory = !parse.PrefersMinimal(x.r.Header["Prefer"])
	reply, err := x.services.Workflows.Send(x.r.Context(), request)
	if err != nil {
		return err
	}
	x.answerInstance(reply)
	return nil
}

// answerInstance answers create and event.
func (x *exchange) answerInstance(reply *message.Reply) {
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
	request := message.Load{
		Caller:      x.caller,
		WorkflowID:  x.params.ByName("workflowId"),
		InstanceID:  x.params.ByName("instanceId"),
		WithHistory: !parse.PrefersMinimal(x.r.Header["Prefer"]),
	}
	if err := x.checkIdentifiers(); err != nil {
		return err
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
func (x *exchange) setInstanceHeaders(reply *message.Reply) {
	h := x.w.Header()
	h["Etag"] = []string{parse.EntityTag(reply.Sequence)}
	if !reply.WithHistory {
		h["Preference-Applied"] = valueMinimal
	}
	if reply.HistoryFrom > 1 {
		h["Link"] = []string{"<" + x.server.options.BasePath + "/workflow/api/v1/instance/" + reply.WorkflowID + "/" + reply.InstanceID + `/history>; rel="prev"`}
	}
}

// listEvents answers GET
// workflow/api/v1/instance/{workflowId}/{instanceId}/events.
func listEvents(x *exchange) error {
	request := message.Load{
		Caller:     x.caller,
		WorkflowID: x.params.ByName("workflowId"),
		InstanceID: x.params.ByName("instanceId"),
	}
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	reply, err := x.services.Workflows.Events(x.r.Context(), &request)
	if err != nil {
		return err
	}
	// The tag is the instance's: what stands here holds until it moves on.
	x.w.Header()["Etag"] = []string{parse.EntityTag(reply.Sequence)}
	out := api.EventList{Events: []api.Event{}}
	for _, e := range reply.Events {
		out.Events = append(out.Events, eventOf(e))
	}
	presentEvents(out.Events, reply, x.languages())
	return x.answerJSON(out)
}

func eventOf(e statemachine.Available) api.Event {
	out := api.Event{
		PresentedEvent: api.PresentedEvent{Name: string(e.Name)}, Guard: api.Guard(e.Guard.String()), Transitions: []api.Transition{}, Schema: json.RawMessage(e.Schema),
	}
	for _, t := range e.Transitions {
		to := []string{}
		for _, target := range t.Targets {
			to = append(to, string(target))
		}
		out.Transitions = append(out.Transitions, api.Transition{
			StateMachineID: string(t.From.Machine), NodeID: string(t.From.Node), Targets: to, Guard: api.Guard(t.Guard.String()),
		})
	}
	return out
}

// checkIdentifiers demands that all parameters of the path are valid identifiers.
// Nothing has an invalid one, so it is failure.ErrNotFound.
func (x *exchange) checkIdentifiers() error {
	for _, param := range x.params {
		if !statemachine.IsIdentifier(param.Value) {
			return failure.ErrNotFound
		}
	}
	return nil
}

// listChoices answers GET workflow/api/v1/choices.
func listChoices(x *exchange) error {
	return x.answerJSON(api.ChoiceList{Workflows: choicesOf(x.services.Workflows.Choices(x.caller))})
}
