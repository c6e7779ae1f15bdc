// Package instances has the routes of group B about instances: create, event, batches, queries, history,
// changes and watches. A batch is many creates and events in one request, whose items may go to other nodes
// (package forward). It knows no credential and no limit: the kernel has done with them.
package instances

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"

	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/actors/workflow/batch"
	"troupe/gateway/api"
	"troupe/gateway/internal/forward"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Workflows Workflows
	Queries   Queries
	Watches   Watches
	Changes   Changes
	Forwarder *forward.Forwarder
	Shares    BatchShares
}

// Workflows is what group B needs. Replies belong to the callee and are only read. Errors are those of package failure.
type Workflows interface {
	Instances
	Batches
	// Choices lists what the caller may create.
	Choices(caller *identity.Principal) []catalog.Choice
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
	Events(*message.Load) (*message.Events, error)
	// History returns a page of an instance's history.
	History(*message.History) (*message.Page, error)
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

// Queries lists instances.
type Queries interface {
	// Query calls item with the JSON of each instance, in the order that was asked for; the bytes are valid during the
	// call. An error of item ends the query and is returned.
	Query(ctx context.Context, request *query.Request, item func(instance []byte) error) (*query.End, error)
}

// Watches streams what is committed.
type Watches interface {
	// Watch calls deliver with watch.Opened and then with each event, one call after the other, at least every 15 s and
	// each after request.Reauthorize, until one of the two returns an error, ctx ends, or the watches are stopped, which
	// is nil. An error before the first call of deliver is a refusal. Neither is called any more when Watch has
	// returned.
	Watch(ctx context.Context, request *watch.Request, deliver func(watch.Event) error) error
}

// Changes is the feed of changes.
type Changes interface {
	// Changes returns a page of what was committed behind a cursor, as changefeed.Service says.
	Changes(context.Context, *changefeed.Request) (*changefeed.Page, error)
}

// createInstance answers POST workflow/api/v1/create. If-Match has no meaning here and is ignored, as RFC 9110 (13.1.1)
// has it for what has no present representation.
func (g *Group) createInstance(x *kernel.Exchange) error {
	key, body, err := x.KeyedBody()
	if err != nil {
		return err
	}
	request, err := parseCreate(body)
	if err != nil {
		return err
	}
	if request.Retry, err = kernel.RetryOf(x, key, "", body); err != nil {
		return err
	}
	request.Caller, request.Span = x.Caller, x.Span
	request.WithHistory = !parse.PrefersMinimal(x.Request.Header["Prefer"])
	reply, err := g.Workflows.Create(x.Request.Context(), request)
	if err != nil {
		return err
	}
	x.AnswerInstance(reply)
	return nil
}

func (g *Group) sendEvent(x *kernel.Exchange) error {
	key, err := parse.IdempotencyKey(x.Request.Header["Idempotency-Key"])
	if err != nil {
		return err
	}
	ifMatch, err := parse.IfMatch(x.Request.Header["If-Match"])
	if err != nil {
		return err
	}
	body, err := parse.Body(x.Body)
	if err != nil {
		return err
	}
	request, err := parseEvent(body)
	if err != nil {
		return err
	}
	if request.Retry, err = kernel.RetryOf(x, key, request.ID, body); err != nil {
		return err
	}
	request.Caller, request.Span = x.Caller, x.Span
	request.IfMatch = ifMatch
	request.WithHistory = !parse.PrefersMinimal(x.Request.Header["Prefer"])
	reply, err := g.Workflows.Send(x.Request.Context(), request)
	if err != nil {
		return err
	}
	x.AnswerInstance(reply)
	return nil
}

func (g *Group) loadInstance(x *kernel.Exchange) error {
	request := message.Load{
		Caller:      x.Caller,
		WorkflowID:  x.Params.ByName("workflowId"),
		InstanceID:  x.Params.ByName("instanceId"),
		WithHistory: !parse.PrefersMinimal(x.Request.Header["Prefer"]),
	}
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	q := parse.Parameters{Values: x.Query}
	if request.At = q.Number("at"); q.Err != nil {
		return q.Err
	}
	reply, err := g.Workflows.Load(x.Request.Context(), &request)
	if err != nil {
		return err
	}
	x.NoteInstance(&request)
	x.SetInstanceHeaders(reply)
	if request.At > 0 { // its tag is of no use
		delete(x.Writer.Header(), "Etag")
	}
	x.Out = append(x.Out, `{"state":`...)
	x.Out = reply.AppendRecord(x.Out)
	x.Out = append(x.Out, '}')
	x.Send(http.StatusOK)
	return nil
}

func (g *Group) listEvents(x *kernel.Exchange) error {
	request := message.Load{
		Caller:     x.Caller,
		WorkflowID: x.Params.ByName("workflowId"),
		InstanceID: x.Params.ByName("instanceId"),
	}
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	reply, err := g.Workflows.Events(&request)
	if err != nil {
		return err
	}
	x.NoteInstance(&request) // NB: guards look at svcPrivate
	x.SetLeader(request.InstanceID)
	// The tag is the instance's: what stands here holds until it moves on.
	x.Writer.Header()["Etag"] = []string{parse.EntityTag(reply.Sequence)}
	out := api.EventList{Events: []api.Event{}}
	for _, e := range reply.Events {
		out.Events = append(out.Events, eventOf(e))
	}
	presentEvents(out.Events, reply, x.Languages())
	return x.AnswerJSON(out)
}

func (g *Group) listChoices(x *kernel.Exchange) error {
	return x.AnswerJSON(api.ChoiceList{Workflows: show.Choices(g.Workflows.Choices(x.Caller))})
}

var (
	createShape = parse.NewShape("", parse.Field{Name: "workflowId", Kind: data.String, Required: true}, parse.Field{Name: "data", Kind: data.Object})
	dataShape   = parse.NewShape("data.", parse.Field{Name: "svcPublic", Kind: data.Object}, parse.Field{Name: "svcPrivate", Kind: data.Object})
	bodyShape   = parse.NewShape("",
		parse.Field{Name: "workflowId", Kind: data.String, Required: true},
		parse.Field{Name: "instanceId", Kind: data.String},
		parse.Field{Name: "event", Kind: data.Object},
		parse.Field{Name: "key", Kind: data.String, Check: checkKey},
		parse.Field{Name: "create", Kind: data.Object},
	)
	creationShape = parse.NewShape("create.", parse.Field{Name: "svcPublic", Kind: data.Object}, parse.Field{Name: "svcPrivate", Kind: data.Object})
	eventShape    = parse.NewShape("event.",
		parse.Field{Name: "name", Kind: data.String, Required: true}, // whether there is such an event only its workflow knows, after the rights
		parse.Field{Name: "data", Kind: data.Object},
		parse.Field{Name: "id", Kind: data.String, Check: checkEventID},
	)
)

func checkEventID(v data.Value) error {
	if !parse.IsIdempotencyKey(v.Text()) {
		return parse.Malformed(`"event.id" must have 1 to %d visible ASCII characters`, parse.IdempotencyKeyCharsMax)
	}
	return nil
}

func checkKey(v data.Value) error {
	if !statemachine.IsKey(v.Text()) {
		return parse.Malformed(`"key" must have 1 to %d characters, and no control characters`, statemachine.MaxKeyChars)
	}
	return nil
}

// parseCreate reads the body of create. The values in the result are slices of body. What the body says wrongly is
// failure.ErrInvalid with the name of the member; an id that can be nobody's is failure.ErrNotFound, and only when all
// the rest is well-formed.
func parseCreate(body data.Value) (*message.Create, error) {
	var outer, inner [2]data.Value
	if err := createShape.Read(body, outer[:]); err != nil {
		return nil, err
	}
	if err := dataShape.Read(outer[1], inner[:]); err != nil {
		return nil, err
	}
	request := &message.Create{WorkflowID: outer[0].Text(), Public: inner[0], Private: inner[1]}
	if !statemachine.IsIdentifier(request.WorkflowID) {
		return nil, failure.ErrNotFound
	}
	return request, nil
}

// parseEvent reads the body of event, as parseCreate does.
func parseEvent(body data.Value) (*message.Event, error) {
	var outer [5]data.Value
	var event [3]data.Value
	var create [2]data.Value
	if err := bodyShape.Read(body, outer[:]); err != nil {
		return nil, err
	}
	byID, byKey, creates := outer[1] != nil, outer[3] != nil, outer[4] != nil
	switch {
	case byID && byKey:
		return nil, parse.Malformed(`"instanceId" and "key" cannot stand together: leave out one of them`)
	case creates && !byKey:
		return nil, parse.Malformed(`"create" needs "key": an event to an instanceId creates nothing`)
	case !byID && !byKey:
		return nil, parse.MissingMember("instanceId")
	case outer[2] == nil:
		return nil, parse.MissingMember("event")
	}
	if err := eventShape.Read(outer[2], event[:]); err != nil {
		return nil, err
	}
	if err := creationShape.Read(outer[4], create[:]); err != nil {
		return nil, err
	}
	request := &message.Event{
		WorkflowID: outer[0].Text(), InstanceID: outer[1].Text(), Key: outer[3].Text(), Name: event[0].Text(), Data: event[1], ID: event[2].Text(),
	}
	if creates {
		request.Create = &message.Create{Public: create[0], Private: create[1]}
	}
	if !statemachine.IsIdentifier(request.WorkflowID) || byID && !statemachine.IsIdentifier(request.InstanceID) {
		return nil, failure.ErrNotFound
	}
	return request, nil
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

func presentEvents(events []api.Event, reply *message.Events, languages []string) {
	for i := range events {
		e := &events[i]
		seen := show.Event(reply.Of, statemachine.EventName(e.Name), languages)
		e.Label, e.Done, e.Style = seen.Label, seen.Done, seen.Style
		for k := range e.Transitions {
			t := &e.Transitions[k]
			from := statemachine.Position{Machine: statemachine.MachineID(t.StateMachineID)}
			t.TargetLabels = []string{}
			for _, target := range t.Targets {
				l := reply.Of.LabelOfTarget(from, statemachine.NodeID(target))
				t.TargetLabels = append(t.TargetLabels, l.Label.For(languages...))
			}
		}
	}
}

// BatchShares are what the batches on their way have together: how many they are, and the bytes of their large bodies.
type BatchShares struct{ Batches, Bytes atomic.Int64 }
