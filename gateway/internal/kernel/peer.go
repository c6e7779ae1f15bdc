package kernel

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"

	"troupe/actors/identity"
)

// SenderHeader is the header with which a node says what it knows of a request that it
// forwards. It means something only to PeerHandler: from anybody else it is ignored.
const SenderHeader = "Troupe-Sender"

// Sender is what SenderHeader holds, in JSON.
type Sender struct {
	node string // from the connection, not from the header
	// User is the caller, empty where no credential is needed, and Roles those that the
	// credential has beyond the user's own.
	User  identity.UserID `json:"user,omitempty"`
	Roles []string        `json:"roles,omitempty"`
	// Operator: the caller is who runs the service, in place of a user.
	Operator bool `json:"operator,omitempty"`
	// Request is the id of the request in the log of the node.
	Request string `json:"request"`
	// Client and Secure are what ClientOf says there.
	Client netip.Addr `json:"client"`
	Secure bool       `json:"secure,omitempty"`
	// Part says that the body is a part of a batch; nil for any other request.
	Part *Part `json:"part,omitempty"`
}

// senderKey is the key of the sender in the context of a request.
type senderKey struct{}

// senderOf returns the node that forwarded a request, nil when the caller asked here.
func senderOf(r *http.Request) *Sender {
	from, _ := r.Context().Value(senderKey{}).(*Sender)
	return from
}

// PeerHandler is Server.PeerHandler.
func (s *Kernel) PeerHandler(nodeOf func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := &Sender{}
		lines := r.Header[SenderHeader]
		if from.node = nodeOf(r); from.node == "" || len(lines) != 1 || json.Unmarshal([]byte(lines[0]), from) != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.metrics.taken.Add(1)
		s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), senderKey{}, from)))
	})
}

// Part says that a forwarded body has items of a batch, all of one shard.
type Part struct {
	// Key is the idempotency key of the whole batch; empty without one. Numbers are then the places
	// of the items in the whole, from 0.
	Key     string `json:"key,omitempty"`
	Numbers []int  `json:"numbers,omitempty"`
	// Keep asks to keep Key for the whole batch, whose fingerprint it is, in hexadecimal. Such a
	// part has no items.
	Keep string `json:"keep,omitempty"`
}
