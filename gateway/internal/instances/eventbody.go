package instances

import (
	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

var (
	createShape = parse.NewShape("", parse.Field{Name: "workflowId", Kind: data.String, Required: true}, parse.Field{Name: "data", Kind: data.Object})
	dataShape   = parse.NewShape("data.", parse.Field{Name: "svcPublic", Kind: data.Object}, parse.Field{Name: "svcPrivate", Kind: data.Object})
	bodyShape   = parse.NewShape("",
		parse.Field{Name: "workflowId", Kind: data.String, Required: true},
		parse.Field{Name: "instanceId", Kind: data.String, Required: true},
		parse.Field{Name: "event", Kind: data.Object, Required: true},
	)
	eventShape = parse.NewShape("event.",
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
	var outer, event [3]data.Value
	if err := bodyShape.Read(body, outer[:]); err != nil {
		return nil, err
	}
	if err := eventShape.Read(outer[2], event[:]); err != nil {
		return nil, err
	}
	request := &message.Event{
		WorkflowID: outer[0].Text(), InstanceID: outer[1].Text(), Name: event[0].Text(), Data: event[1], ID: event[2].Text(),
	}
	if !statemachine.IsIdentifier(request.WorkflowID) || !statemachine.IsIdentifier(request.InstanceID) {
		return nil, failure.ErrNotFound
	}
	return request, nil
}
