package instances

import (
	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// parseCreate reads the body of create. The values in the result are slices of
// body. What the body says wrongly is failure.ErrInvalid with the name of the member; an
// id that can be nobody's is failure.ErrNotFound, and only when all the rest is well-formed.
func parseCreate(body data.Value) (*message.Create, error) {
	request := new(message.Create)
	var content data.Value
	found := false
	for key, v := range body.Members() {
		var err error
		switch key {
		case "workflowId":
			found = true
			request.WorkflowID, err = parse.StringMember(v, key)
		case "data":
			content, err = parse.ObjectMember(v, key)
		default:
			err = parse.UnknownMember("", key, "workflowId", "data")
		}
		if err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, parse.MissingMember("workflowId")
	}
	for key, v := range content.Members() {
		var err error
		switch key {
		case "svcPublic":
			request.Public, err = parse.ObjectMember(v, "data.svcPublic")
		case "svcPrivate":
			request.Private, err = parse.ObjectMember(v, "data.svcPrivate")
		default:
			err = parse.UnknownMember("data.", key, "svcPublic", "svcPrivate")
		}
		if err != nil {
			return nil, err
		}
	}
	if !statemachine.IsIdentifier(request.WorkflowID) {
		return nil, failure.ErrNotFound
	}
	return request, nil
}

// parseEvent reads the body of event, with the errors of parseCreate. The values in
// the result are slices of body.
func parseEvent(body data.Value) (*message.Event, error) {
	request := new(message.Event)
	var event data.Value
	hasWorkflow, hasInstance := false, false
	for key, v := range body.Members() {
		var err error
		switch key {
		case "workflowId":
			hasWorkflow = true
			request.WorkflowID, err = parse.StringMember(v, key)
		case "instanceId":
			hasInstance = true
			request.InstanceID, err = parse.StringMember(v, key)
		case "event":
			event, err = parse.ObjectMember(v, key)
		default:
			err = parse.UnknownMember("", key, "workflowId", "instanceId", "event")
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case !hasWorkflow:
		return nil, parse.MissingMember("workflowId")
	case !hasInstance:
		return nil, parse.MissingMember("instanceId")
	case event.Kind() == data.Absent:
		return nil, parse.MissingMember("event")
	}
	if err := parseEventObject(event, request); err != nil {
		return nil, err
	}
	if !statemachine.IsIdentifier(request.WorkflowID) || !statemachine.IsIdentifier(request.InstanceID) {
		return nil, failure.ErrNotFound
	}
	return request, nil
}

// parseEventObject reads the member "event" into request.
func parseEventObject(event data.Value, request *message.Event) error {
	hasName := false
	for key, v := range event.Members() {
		var err error
		switch key {
		case "name":
			hasName = true
			request.Name, err = parse.StringMember(v, "event.name")
		case "data":
			request.Data, err = parse.ObjectMember(v, "event.data")
		case "id":
			if request.ID, err = parse.StringMember(v, "event.id"); err == nil && !parse.IsIdempotencyKey(request.ID) {
				err = parse.Malformed(`"event.id" must have 1 to %d visible ASCII characters`, parse.IdempotencyKeyCharsMax)
			}
		default:
			err = parse.UnknownMember("event.", key, "name", "data", "id")
		}
		if err != nil {
			return err
		}
	}
	if !hasName {
		return parse.MissingMember("event.name")
	}
	return nil // NB: whether there is such an event only its workflow knows, after the rights
}
