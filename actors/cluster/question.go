package cluster

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

// A question is a call whose answer may be long, and comes as it is made.
const pathAsk = pathPrefix + "ask"

// Questions has the node's part of package fanout.
type Questions struct{ *Node }

// Leader implements fanout.Peers.
func (q Questions) Leader(ctx context.Context, sh key.Shard) (string, error) {
	id, err := q.Node.Leader(ctx, sh)
	if err != nil || id == q.self {
		return "", err
	}
	return string(id), nil
}

// Ask implements fanout.Peers. NB: an answer that was broken off does not end with io.EOF (package frame).
func (q Questions) Ask(ctx context.Context, node string, question []byte) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+node+pathAsk, bytes.NewReader(question))
	if err != nil {
		return nil, failure.Errorf(failure.ErrInternal, "%w", err)
	}
	answer, err := q.port.RoundTrip(request)
	if err != nil {
		return nil, failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, callBytesMax))
		_ = answer.Body.Close()
		return nil, failure.Errorf(failure.ErrUnavailable, "node %s: %s", node, bytes.TrimSpace(text))
	}
	return answer.Body, nil
}

// HandleQuestions has the questions of other nodes answered. What answer returns an error for is broken off.
func (n *Node) HandleQuestions(answer func(ctx context.Context, question []byte, out io.Writer, flush func() error) error) {
	n.mux.HandleFunc("POST "+pathAsk, func(w http.ResponseWriter, r *http.Request) {
		if !n.started.Load() {
			writeError(w, failure.Refuse(failure.ErrUnavailable, "the node is starting"))
			return
		}
		question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, callBytesMax))
		if err != nil {
			http.Error(w, "the question cannot be read: "+err.Error(), http.StatusBadRequest)
			return
		}
		if err := answer(r.Context(), question, w, http.NewResponseController(w).Flush); err != nil {
			panic(http.ErrAbortHandler)
		}
	})
}
