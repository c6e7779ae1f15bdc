package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"troupe/gateway/api"
)

// Instance is an instance as the service answered it.
type Instance struct {
	api.Instance
	// Sequence is the number of its history entries, for SendRequest.IfMatch. It is 0 in lists, which do not say it.
	Sequence uint64
	Raw      json.RawMessage // the record as it came
}

// CreateRequest asks for a new instance.
type CreateRequest struct {
	WorkflowID      string
	Public, Private json.RawMessage // Public and Private are JSON objects; nil is none
	// Key is the idempotency key: 1 to 255 visible ASCII characters that do not
	// begin with a quote. Empty: one is drawn.
	Key     string
	Minimal bool // Minimal asks for the answer without its history
}

// Create makes an instance; it is durable when Create returns. Errors wrap
// *Error, ErrInvalid, ErrProtocol, ErrOutcomeUnknown, or the context's.
func (c *Client) Create(ctx context.Context, r CreateRequest) (made *Instance, err error) {
	defer asking(&err, "create %s", r.WorkflowID)
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
	Event                  string          // the event's name
	Data                   json.RawMessage // a JSON object; nil is none
	// IfMatch is the Sequence that the instance must have; otherwise nothing is
	// done and the error's status is 412. 0: any.
	IfMatch uint64
	Key     string // Key and Minimal are as in CreateRequest
	Minimal bool
}

// Send sends an event; its outcome is durable when Send returns. Errors are those of Create.
func (c *Client) Send(ctx context.Context, r SendRequest) (moved *Instance, err error) {
	defer asking(&err, "send %s to %s/%s", r.Event, r.WorkflowID, r.InstanceID)
	if err := checkInstance(r.WorkflowID, r.InstanceID); err != nil {
		return nil, err
	}
	body := api.EventRequest{
		WorkflowID: r.WorkflowID, InstanceID: r.InstanceID, Event: api.SentEvent{Name: r.Event, Data: r.Data},
	}
	return c.change(ctx, &request{path: []string{"event"}, key: r.Key, ifMatch: r.IfMatch, minimal: r.Minimal}, &body)
}

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

func (c *Client) instance(ctx context.Context, r *request) (*Instance, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return nil, err
	}
	var reply api.InstanceReply
	if err := decode(a.body, &reply); err != nil {
		return nil, err
	}
	i := &Instance{Sequence: a.sequence()}
	if err := i.read(reply.State); err != nil {
		return nil, err
	}
	return i, nil
}

func (c *Client) get(ctx context.Context, path []string, query url.Values, to any) (*answer, error) {
	a, err := c.call(ctx, &request{method: http.MethodGet, path: path, query: query})
	if err != nil {
		return nil, err
	}
	return a, decode(a.body, to)
}

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
	Minimal                bool // Minimal asks for it without its history
}

// Instance returns an instance as everything acknowledged before has left it.
func (c *Client) Instance(ctx context.Context, r InstanceRequest) (found *Instance, err error) {
	defer asking(&err, "load %s/%s", r.WorkflowID, r.InstanceID)
	if err := checkInstance(r.WorkflowID, r.InstanceID); err != nil {
		return nil, err
	}
	return c.instance(ctx, &request{
		method: http.MethodGet, path: []string{"instance", r.WorkflowID, r.InstanceID}, minimal: r.Minimal,
	})
}

// Choices lists the workflows that the caller may create.
func (c *Client) Choices(ctx context.Context) (choices []api.Choice, err error) {
	defer asking(&err, "list choices")
	var list api.ChoiceList
	if _, err = c.get(ctx, []string{"choices"}, nil, &list); err != nil {
		return nil, err
	}
	return list.Workflows, nil
}

// Events is what can be sent to an instance.
type Events struct {
	Events   []api.Event
	Sequence uint64          // that of the instance for which this holds
	Raw      json.RawMessage // the whole answer as it came
}

// Events lists the events that the caller may send to an instance now.
func (c *Client) Events(ctx context.Context, workflowID, instanceID string) (events *Events, err error) {
	defer asking(&err, "list events of %s/%s", workflowID, instanceID)
	if err := checkInstance(workflowID, instanceID); err != nil {
		return nil, err
	}
	var list api.EventList
	a, err := c.get(ctx, []string{"instance", workflowID, instanceID, "events"}, nil, &list)
	if err != nil {
		return nil, err
	}
	return &Events{Events: list.Events, Sequence: a.sequence(), Raw: a.body}, nil
}
