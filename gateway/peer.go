package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"

	"troupe/actors/identity"
)

// Peers reaches the other nodes of a cluster.
type Peers interface {
	// Leader returns the node that leads a shard; of key.EveryShard it is any that has all
	// shards and can answer lists. It waits until there is one or ctx ends; an error means that
	// there is none.
	Leader(ctx context.Context, shard uint16) (Peer, error)
}

// Peer is a node of the cluster.
type Peer struct {
	// Node is its id.
	Node string
	// Transport sends requests to its PeerHandler; nil when it is this node. In a request's URL
	// the scheme is "https" and the host is Node, as peer.Port wants it; the header Host is the caller's. A Transport adds no
	// encoding and follows no redirect. A node that falls silent must become an
	// error, at the latest when another one leads. As net/http's own does, it tells an
	// httptrace.ClientTrace when it looks for a connection and when it has one: an error without a
	// connection means that nothing was sent.
	Transport http.RoundTripper
}

// senderHeader is the header with which a node says what it knows of a request that it
// forwards. It means something only to PeerHandler: from anybody else it is ignored.
const senderHeader = "Troupe-Sender"

// sender is what senderHeader holds, in JSON.
type sender struct {
	node string // from the connection, not from the header
	// User is the caller, empty where no credential is needed, and Roles those that the
	// credential has beyond the user's own.
	User  identity.UserID `json:"user,omitempty"`
	Roles []string        `json:"roles,omitempty"`
	// Operator: the caller is who runs the service, in place of a user.
	Operator bool `json:"operator,omitempty"`
	// Request is the id of the request in the log of the node.
	Request string `json:"request"`
	// Client and Secure are what clientOf says there.
	Client netip.Addr `json:"client"`
	Secure bool       `json:"secure,omitempty"`
	// Part says that the body is a part of a batch; nil for any other request.
	Part *part `json:"part,omitempty"`
}

// senderKey is the key of the sender in the context of a request.
type senderKey struct{}

// senderOf returns the node that forwarded a request, nil when the caller asked here.
func senderOf(r *http.Request) *sender {
	from, _ := r.Context().Value(senderKey{}).(*sender)
	return from
}

// PeerHandler answers requests that other nodes forward. Only nodes of the cluster may reach
// it: it believes them who the caller is. nodeOf returns the id of the node that sent a request,
// empty when that is not proved, which is answered 403. A request whose shard is not led here is
// answered 421, and so is every request before Open and while the server stops; nothing was done then.
//
// The listener must take headers of Options.HeaderBytesMax and 4 KiB, and must not end streams. All
// nodes need the same Options.BasePath and Options.SessionCookie.
func (s *Server) PeerHandler(nodeOf func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := &sender{}
		lines := r.Header[senderHeader]
		if from.node = nodeOf(r); from.node == "" || len(lines) != 1 || json.Unmarshal([]byte(lines[0]), from) != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.metrics.taken.Add(1)
		s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), senderKey{}, from)))
	})
}

// identify returns whose the credential of the request is. Of a request that another node has
// forwarded, that node has looked it up: it may not be known here yet.
func (x *exchange) identify(kind identity.Kind) (*identity.Principal, error) {
	if from := x.sender; from != nil {
		return x.services.Credentials.Principal(from.User, from.Roles)
	}
	return x.services.Credentials.Authenticate(kind, x.credential)
}

// introduce returns what senderHeader says of the request.
func (x *exchange) introduce() (*sender, error) {
	from := &sender{Request: x.requestID()}
	from.Client, from.Secure = x.server.clientOf(x.r)
	switch {
	case x.caller == operator:
		from.Operator = true
	case x.caller != nil:
		own, err := x.services.Credentials.Principal(x.caller.ID, nil)
		if err != nil {
			return nil, err
		}
		from.User = x.caller.ID
		if own != x.caller {
			from.Roles = slices.DeleteFunc(slices.Clone(x.caller.Roles), func(role string) bool { return slices.Contains(own.Roles, role) })
		}
	}
	return from, nil
}
