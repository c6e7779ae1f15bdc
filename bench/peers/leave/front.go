package leave

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Peer keeps instances. Its methods return when what they did is durable. They return
// ErrNotFound and ErrRefused.
type Peer interface {
	Create(ctx context.Context, id string, public json.RawMessage, at time.Time) (Record, error)
	Send(ctx context.Context, id string, e Event) (Record, error)
}

// reply is the answer to a create and to an event, its members in the order of
// gateway/INTERFACE.md, "The record".
type reply struct {
	WorkflowID string `json:"workflowId"`
	InstanceID string `json:"instanceId"`
	State      struct {
		ID      string          `json:"_id"`
		Public  json.RawMessage `json:"svcPublic"`
		Private json.RawMessage `json:"svcPrivate"`
		States  [1]state        `json:"states"`
	} `json:"state"`
}

type state struct {
	Machine string `json:"stateMachineId"`
	Node    string `json:"nodeId"`
}

// front returns the HTTP interface of a peer.
func front(p Peer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /workflow/api/v1/create", func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			WorkflowID string `json:"workflowId"`
			Data       struct {
				Public json.RawMessage `json:"svcPublic"`
			} `json:"data"`
		}
		if !decode(w, r, &request) {
			return
		}
		id := rand.Text()
		record, err := p.Create(r.Context(), id, request.Data.Public, time.Now().UTC())
		answer(w, request.WorkflowID, id, &record, err)
	})
	mux.HandleFunc("POST /workflow/api/v1/event", func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			WorkflowID string `json:"workflowId"`
			InstanceID string `json:"instanceId"`
			Event      Event  `json:"event"`
		}
		if !decode(w, r, &request) {
			return
		}
		request.Event.At = time.Now().UTC()
		record, err := p.Send(r.Context(), request.InstanceID, request.Event)
		answer(w, request.WorkflowID, request.InstanceID, &record, err)
	})
	return mux
}

// decode reads the body, or answers what is wrong with the request.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	if r.Header.Get("Prefer") != "return=minimal" {
		http.Error(w, "there are only replies without history: send Prefer: return=minimal", http.StatusNotImplemented)
		return false
	}
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func answer(w http.ResponseWriter, workflow, id string, record *Record, err error) {
	switch {
	case errors.Is(err, ErrNotFound):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case errors.Is(err, ErrRefused):
		http.Error(w, err.Error(), http.StatusConflict)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	out := reply{WorkflowID: workflow, InstanceID: id}
	out.State.ID, out.State.Public, out.State.Private = id, record.Public, record.Private
	out.State.States[0] = state{"main", record.Node}
	body, err := json.Marshal(&out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // an error means that the caller has gone
}
