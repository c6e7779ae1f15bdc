package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"troupe/actors/failure"
)

// Cluster is what the commands need of the node that the server is.
type Cluster interface {
	// Invite returns the text of a key with which one node can join.
	Invite(ctx context.Context, expires time.Duration) (string, error)
	// Remove begins the removal of a node; lost: it will not come back.
	Remove(ctx context.Context, node string, lost bool) error
	// Status is what `troupe cluster status` shows, to be encoded as JSON.
	Status() any
}

// errAlone is the error of commands for a cluster at a server that stands alone.
var errAlone = failure.Refuse(failure.ErrConflict, "this server stands alone: `troupe cluster init` makes its home the first node of a cluster")

type inviteRequest struct {
	Expires time.Duration `json:"expires"` // nanoseconds
}

type inviteReply struct {
	Key string `json:"key"`
}

func (s *Server) clusterRoutes(handle func(pattern string, do func(r *http.Request) (any, error))) {
	with := func(do func(c Cluster, r *http.Request) (any, error)) func(*http.Request) (any, error) {
		return func(r *http.Request) (any, error) {
			if s.options.Cluster == nil {
				return nil, errAlone
			}
			return do(s.options.Cluster, r)
		}
	}
	handle("GET "+pathCluster, with(func(c Cluster, _ *http.Request) (any, error) { return c.Status(), nil }))
	handle("POST "+pathInvite, with(func(c Cluster, r *http.Request) (any, error) {
		var request inviteRequest
		if err := decode(r, &request); err != nil {
			return nil, err
		}
		key, err := c.Invite(r.Context(), request.Expires)
		return inviteReply{key}, err
	}))
	handle("DELETE "+pathNodes+"/{id}", with(func(c Cluster, r *http.Request) (any, error) {
		return emptyReply{}, c.Remove(r.Context(), r.PathValue("id"), r.URL.Query().Get("lost") == "true")
	}))
}

// Invite makes a key with which one node can join the cluster.
func (c *Client) Invite(ctx context.Context, expires time.Duration) (string, error) {
	var answer inviteReply
	err := c.call(ctx, http.MethodPost, pathInvite, inviteRequest{expires}, &answer)
	return answer.Key, err
}

// ClusterStatus returns what the node knows of the cluster, as JSON.
func (c *Client) ClusterStatus(ctx context.Context) ([]byte, error) {
	var answer json.RawMessage
	err := c.call(ctx, http.MethodGet, pathCluster, nil, &answer)
	return answer, err
}

// RemoveNode begins the removal of a node; lost: it will not come back.
func (c *Client) RemoveNode(ctx context.Context, node string, lost bool) error {
	path := pathNodes + "/" + url.PathEscape(node)
	if lost {
		path += "?lost=true"
	}
	return c.call(ctx, http.MethodDelete, path, nil, new(emptyReply))
}

// passMax is how long a command waits for a node that leads the shard Meta, and passPause the pause between two tries.
const (
	passMax   = 10 * time.Second
	passPause = 50 * time.Millisecond
)

// PeerHandler answers commands that other nodes pass on, because this one leads the shard Meta. Only
// nodes of the cluster may reach it.
func (s *Server) PeerHandler() http.Handler { return s.routes(false) }

// pass has the node that leads the shard Meta carry a command out, and answers with what that says.
// Nothing was done here yet; when this node has come to lead, here does it, and nothing is answered.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, body []byte, here func() error) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), passMax)
	defer cancel()
	for {
		request := r.Clone(ctx)
		request.RequestURI, request.Body, request.ContentLength = "", io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer, err := s.options.Leader(request)
		switch {
		case errors.Is(err, failure.ErrNotLeader): // a leader is believed in that is gone
		case err != nil:
			return false, err
		case answer == nil:
			if err := here(); !errors.Is(err, failure.ErrNotLeader) {
				return false, err
			}
		case answer.StatusCode != http.StatusMisdirectedRequest:
			defer func() { _ = answer.Body.Close() }()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(answer.StatusCode)
			_, _ = io.Copy(w, answer.Body)
			return true, nil
		default:
			_ = answer.Body.Close()
		}
		select {
		case <-time.After(passPause):
		case <-ctx.Done():
			return false, failure.Refuse(failure.ErrUnavailable, "no node leads the cluster's own shard: are most of its nodes running?")
		}
	}
}
