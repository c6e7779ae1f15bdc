package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/persistence/key"
)

// The calls between nodes. Each is a POST with a JSON body, and answered with one.
const (
	pathPrefix  = "/cluster/"
	pathHello   = pathPrefix + "hello"
	pathIndex   = pathPrefix + "index"
	pathInvite  = pathPrefix + "invite"
	pathAdmit   = pathPrefix + "admit"
	pathRemove  = pathPrefix + "remove"
	pathGoodbye = pathPrefix + "goodbye"
)

const callBytesMax = 8 << 20

// kinds are the errors that a call can bring from another node, with their status. Others are failure.ErrUnavailable.
var kinds = []struct {
	kind   failure.Kind
	status int
}{
	{failure.ErrInvalid, http.StatusBadRequest},
	{failure.ErrForbidden, http.StatusForbidden},
	{failure.ErrNotFound, http.StatusNotFound},
	{failure.ErrNotAllowed, http.StatusConflict},
	{failure.ErrPrecondition, http.StatusPreconditionFailed},
	{failure.ErrElsewhere, http.StatusMisdirectedRequest},
	{errUnfit, http.StatusUnprocessableEntity},
	{failure.ErrOutcomeUnknown, http.StatusGatewayTimeout},
}

// Handle has calls to a path answered by do.
func Handle[I, O any](n *Node, path string, do func(ctx context.Context, from peer.NodeID, in I) (O, error)) {
	n.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		if path != pathHello && !n.started.Load() {
			writeError(w, failure.Refuse(failure.ErrUnavailable, "the node is starting"))
			return
		}
		var in I
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, callBytesMax)).Decode(&in)
		if err != nil {
			http.Error(w, "the body cannot be read: "+err.Error(), http.StatusBadRequest)
			return
		}
		out, err := do(r.Context(), n.nodeOf(r.Context()), in)
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
}

func writeError(w http.ResponseWriter, err error) {
	of, status := failure.Of(err), http.StatusServiceUnavailable
	for _, k := range kinds {
		if k.kind == of.Kind {
			status = k.status
		}
	}
	text := of.Reason
	if text == "" {
		text = err.Error()
	}
	http.Error(w, text, status)
}

// The error is that of the node, or failure.ErrUnavailable when nothing came; it wraps peer.ErrNotSent when nothing was
// sent either.
func call[I, O any](ctx context.Context, n *Node, to peer.NodeID, path string, in I) (out O, err error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // NB: what is JSON already stays as it is
	if err := e.Encode(in); err != nil {
		return out, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(to)+path, &body)
	if err != nil {
		return out, err
	}
	answer, err := n.port.RoundTrip(request)
	if err != nil {
		return out, failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, callBytesMax))
	if err != nil {
		return out, failure.Errorf(failure.ErrUnavailable, "node %s: %w", to, err)
	}
	if answer.StatusCode != http.StatusOK {
		return out, readError(answer.StatusCode, string(bytes.TrimSpace(text)))
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, failure.Errorf(failure.ErrUnavailable, "node %s: %w", to, err)
	}
	return out, nil
}

func readError(status int, text string) error {
	for _, k := range kinds {
		if k.status != status {
			continue
		}
		if k.kind == failure.ErrElsewhere {
			return failure.Elsewhere(uint16(key.Meta))
		}
		return failure.Refuse(k.kind, "%s", text)
	}
	return failure.Errorf(failure.ErrUnavailable, "%s", text)
}

// Each may say so of the other, so it ends a node that starts when half of the nodes say it, and one that runs when
// most do.
const errUnfit = failure.ErrUnprocessable

type invitation struct {
	ID string `json:"id"`
	entry
}

type joinRequest struct {
	ID      string      `json:"id"`
	Secret  string      `json:"secret"`
	Node    peer.NodeID `json:"node"`
	CSR     []byte      `json:"csr"`
	Address string      `json:"address"`
	Version string      `json:"version"`
	Level   int         `json:"level"`
	Clock   time.Time   `json:"clock"`
	// Word is what the machine says at Address while it waits for the answer. Empty: it says nothing there.
	Word string `json:"word,omitempty"`
}

type joinAnswer struct {
	Certificate []byte                 `json:"certificate"`
	Authority   string                 `json:"authority"`
	Shards      int                    `json:"shards"`
	Nodes       map[peer.NodeID]string `json:"nodes"` // the address of each
}

func say(l net.Listener, word string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(findMax))
		_, _ = io.WriteString(conn, word)
		_ = conn.Close()
	}
}

type removal struct {
	Node peer.NodeID `json:"node"`
	Lost bool        `json:"lost"` // it does not run and will not come back
}

const (
	findMax = 5 * time.Second // findMax bounds the look for a machine at its address
	wordMax = 64              // wordMax bounds what a machine says there, in bytes
)
