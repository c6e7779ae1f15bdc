package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"

	"troupe/gateway/api"
)

// Instance is an instance as the service answered it.
type Instance struct {
	api.Instance
	// Sequence is the number of its history entries, for SendRequest.IfMatch. It
	// is 0 in lists, which do not say it.
	Sequence uint64
	// Raw is the record as it came.
	Raw json.RawMessage
}

// CreateRequest asks for a new instance.
type CreateRequest struct {
	WorkflowID string
	// Public and Private are JSON objects; nil is none.
	Public, Private json.RawMessage
	// Key is the idempotency key: 1 to 255 visible ASCII characters that do not
	// begin with a quote. Empty: one is drawn.
	Key string
	// Minimal asks for the answer without its history.
	Minimal bool
}

// Create makes an instance; it is durable when Create returns. Errors wrap
// *Error, ErrInvalid, ErrProtocol, ErrOutcomeUnknown, or the context's.
func (c *Client) Create(ctx context.Context, r CreateRequest) (*Instance, error) {
	made, err := c.create(ctx, &r)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", printable(r.WorkflowID), err)
	}
	return made, nil
}

func (c *Client) create(ctx context.Context, r *CreateRequest) (*Instance, error) {
	if err := checkWorkflow(r.WorkflowID); err != nil {
		return nil, err
	}
	body := api.CreateRequest{WorkflowID: r.WorkflowID}
	if r.Public != nil || r.Private != nil {
		body.Data = &api.CreateData{Public: r.Public, Private: r.Private}
	}
	return c.change(ctx, &request{path: []string{"create"}, key: r.Key, minimal: r.Minimal}, &body)
}

// SendRequest asks to send an event to an instance.
type SendRequest struct {
	WorkflowID, InstanceID string
	// Event is the event's name.
	Event string
	// Data is a JSON object; nil is none.
	Data json.RawMessage
	// IfMatch is the Sequence that the instance must have; otherwise nothing is
	// done and the error's status is 412. 0: any.
	IfMatch uint64
	// Key and Minimal are as in CreateRequest.
	Key     string
	Minimal bool
}

// Send sends an event; its outcome is durable when Send returns. Errors are
// those of Create.
func (c *Client) Send(ctx context.Context, r SendRequest) (*Instance, error) {
	moved, err := c.send(ctx, &r)
	if err != nil {
		return nil, fmt.Errorf("send %s to %s/%s: %w", printable(r.Event), printable(r.WorkflowID), printable(r.InstanceID), err)
	}
	return moved, nil
}

func (c *Client) send(ctx context.Context, r *SendRequest) (*Instance, error) {
	if err := checkInstance(r.WorkflowID, r.InstanceID); err != nil {
		return nil, err
	}
	body := api.EventRequest{
		WorkflowID: r.WorkflowID, InstanceID: r.InstanceID, Event: api.SentEvent{Name: r.Event, Data: r.Data},
	}
	return c.change(ctx, &request{path: []string{"event"}, key: r.Key, ifMatch: r.IfMatch, minimal: r.Minimal}, &body)
}

// change posts what changes an instance, and returns the instance.
func (c *Client) change(ctx context.Context, r *request, body any) (*Instance, error) {
	if r.key == "" {
		r.key = NewKey()
	}
	if err := checkKey(r.key); err != nil {
		return nil, err
	}
	var err error
	if r.body, err = encode(body); err != nil {
		return nil, err
	}
	r.method = http.MethodPost
	return c.instance(ctx, r)
}

// instance sends a request that is answered with an instance.
func (c *Client) instance(ctx context.Context, r *request) (*Instance, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return nil, err
	}
	var reply api.InstanceReply
	if err := a.decode(&reply); err != nil {
		return nil, err
	}
	i := &Instance{Sequence: a.sequence()}
	return i, i.read(reply.State)
}

// read takes a record apart.
func (i *Instance) read(record json.RawMessage) error {
	i.Raw = record
	if err := decode(record, &i.Instance); err != nil {
		return err
	}
	if i.ID == "" {
		return fmt.Errorf("%w: an instance without _id", ErrProtocol)
	}
	return nil
}

// NewKey draws an idempotency key. Keep it and give it to Create or Send where
// a request must be done once although this process may end in the middle.
func NewKey() string { return rand.Text() }

const keyCharsMax = 255

func checkKey(key string) error {
	ok := len(key) <= keyCharsMax && key[0] != '"'
	for i := range len(key) {
		ok = ok && key[i] > ' ' && key[i] <= '~'
	}
	if !ok {
		return invalid("the idempotency key must have 1 to %d visible ASCII characters and not begin with a quote", keyCharsMax)
	}
	return nil
}

// InstanceRequest names an instance.
type InstanceRequest struct {
	WorkflowID, InstanceID string
	// Minimal asks for it without its history.
	Minimal bool
}

// Instance returns an instance as everything acknowledged before has left it.
func (c *Client) Instance(ctx context.Context, r InstanceRequest) (*Instance, error) {
	err := checkInstance(r.WorkflowID, r.InstanceID)
	var found *Instance
	if err == nil {
		found, err = c.instance(ctx, &request{
			method: http.MethodGet, path: []string{"instance", r.WorkflowID, r.InstanceID}, minimal: r.Minimal,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("load %s/%s: %w", printable(r.WorkflowID), printable(r.InstanceID), err)
	}
	return found, nil
}

// Choices lists the workflows that the caller may create.
func (c *Client) Choices(ctx context.Context) ([]api.Choice, error) {
	var list api.ChoiceList
	a, err := c.call(ctx, &request{method: http.MethodGet, path: []string{"choices"}})
	if err == nil {
		err = a.decode(&list)
	}
	if err != nil {
		return nil, fmt.Errorf("list choices: %w", err)
	}
	return list.Workflows, nil
}

// Events is what can be sent to an instance.
type Events struct {
	Events []api.Event
	// Sequence is that of the instance for which this holds.
	Sequence uint64
	// Raw is the whole answer as it came.
	Raw json.RawMessage
}

// Events lists the events that the caller may send to an instance now.
func (c *Client) Events(ctx context.Context, workflowID, instanceID string) (*Events, error) {
	err := checkInstance(workflowID, instanceID)
	var a *answer
	var list api.EventList
	if err == nil {
		a, err = c.call(ctx, &request{method: http.MethodGet, path: []string{"instance", workflowID, instanceID, "events"}})
	}
	if err == nil {
		err = a.decode(&list)
	}
	if err != nil {
		return nil, fmt.Errorf("list events of %s/%s: %w", printable(workflowID), printable(instanceID), err)
	}
	return &Events{Events: list.Events, Sequence: a.sequence(), Raw: a.body}, nil
}
