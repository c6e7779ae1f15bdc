package client

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBatch holds that results stand where their items do, and that the same batch under
// the same key is done once.
func TestBatch(t *testing.T) {
	s, c := started(t, Options{})
	id := s.Create(`{}`, "submit")
	items := []json.RawMessage{
		json.RawMessage(`{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"note"}}`),
		json.RawMessage(`{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"sbumit"}}`),
		json.RawMessage(`{"workflowId":"leave"}`),
	}
	first, err := c.Batch(t.Context(), BatchRequest{Items: items, Key: "k"})
	require.True(t, err == nil && len(first) == 3 && first[0].Err() == nil && first[0].Sequence == 3 && first[2].InstanceID != "", "got %+v, %v", first, err)
	if refused := (*Error)(nil); !errors.As(first[1].Err(), &refused) || refused.Status != 400 || refused.Code != "InvalidContent" {
		t.Errorf("got %v, want 400 InvalidContent", first[1].Err())
	}
	again, err := c.Batch(t.Context(), BatchRequest{Items: items, Key: "k"})
	assert.True(t, err == nil && slices.Equal(again, first), "again: got %+v, %v, want %+v", again, err, first)
	_, err = c.Batch(t.Context(), BatchRequest{Items: items[:1], Key: "k"})
	assert.Error(t, err, "another batch under the key was taken")
	none, err := c.Batch(t.Context(), BatchRequest{})
	assert.True(t, err == nil && len(none) == 0, "no items: got %+v, %v", none, err)
	for _, wrong := range []BatchRequest{{Items: []json.RawMessage{[]byte("{")}}, {Items: make([]json.RawMessage, BatchMax+1)}, {Key: "a b"}} {
		_, err := c.Batch(t.Context(), wrong)
		assert.ErrorIs(t, err, ErrInvalid)
	}
}

// TestBatchIsRepeatedWithItsKey, and an answer with another number of results is none.
func TestBatchIsRepeatedWithItsKey(t *testing.T) {
	var calls atomic.Int64
	var keys [2]string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1) - 1
		keys[n%2] = r.Header.Get("Idempotency-Key")
		if n == 0 {
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
		_, _ = w.Write([]byte(`{"results":[]}`))
	}))
	defer s.Close()
	c := connect(t, s.URL, Options{HTTP: unkept()})
	_, err := c.Batch(t.Context(), BatchRequest{Items: []json.RawMessage{[]byte("{}")}})
	if !errors.Is(err, ErrProtocol) || calls.Load() != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("got %v after %d calls with the keys %q, want ErrProtocol after 2 with one", err, calls.Load(), keys)
	}
}
