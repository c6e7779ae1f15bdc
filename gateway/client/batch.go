package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
)

// BatchMax is how many items a BatchRequest may have, and BatchBytesMax how many bytes in all.
const (
	BatchMax      = 10_000
	BatchBytesMax = 16 << 20
)

// BatchRequest asks for many events and creates at once.
type BatchRequest struct {
	// Items are JSON objects: {workflowId, instanceId, event: {name, data, id}} is an event, and {workflowId, data:
	// {svcPublic, svcPrivate}} a create. Those of one instance are done in their order.
	Items []json.RawMessage
	// Key is the idempotency key of the whole batch, as in CreateRequest: with it the
	// same items are done once, however often they are sent.
	Key string
}

// BatchResult is what one item was answered: Status 200 with the other members up to
// Sequence, or another status with Code and Message.
type BatchResult struct {
	Status     int    `json:"status"`
	WorkflowID string `json:"workflowId,omitempty"`
	InstanceID string `json:"instanceId,omitempty"`
	Sequence   uint64 `json:"sequence,omitempty"`
	Code       string `json:"error,omitempty"`
	Message    string `json:"message,omitempty"`
}

// Err is nil for an item that was done, else an *Error.
func (r *BatchResult) Err() error {
	if r.Status == http.StatusOK {
		return nil
	}
	return &Error{Status: r.Status, Code: r.Code, Message: r.Message}
}

// Batch sends many events and creates. Each result stands where its item does, and is durable when Batch returns. An
// error is of the batch as a whole; it is one of those of Create. Items that were refused are tried again when the same
// batch is sent again with the same key.
func (c *Client) Batch(ctx context.Context, r BatchRequest) (results []BatchResult, err error) {
	defer asking(&err, "send a batch")
	var body bytes.Buffer
	body.WriteByte('[')
	for i, item := range r.Items {
		if i > 0 {
			body.WriteByte(',')
		}
		if !json.Valid(item) {
			return nil, invalid("item %d is no JSON", i+1)
		}
		body.Write(item)
	}
	body.WriteByte(']')
	if len(r.Items) > BatchMax || body.Len() > BatchBytesMax {
		return nil, invalid("a batch has at most %d items and %d bytes", BatchMax, BatchBytesMax)
	}
	if r.Key == "" {
		r.Key = NewKey()
	}
	if err := checkKey(r.Key); err != nil {
		return nil, err
	}
	a, err := c.call(ctx, &request{method: http.MethodPost, path: []string{"events"}, key: r.Key, body: body.Bytes()})
	if err != nil {
		return nil, err
	}
	var reply struct{ Results []BatchResult }
	if err := decode(a.body, &reply); err != nil {
		return nil, err
	}
	if len(reply.Results) != len(r.Items) {
		return nil, ErrProtocol
	}
	return reply.Results, nil
}
