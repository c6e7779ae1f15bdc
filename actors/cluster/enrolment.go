package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"troupe/actors/cluster/peer"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Joining is what Join needs.
type Joining struct {
	Key                peer.JoinKey
	Advertise, Version string
	// Listener is at the address of the node's cluster port: the cluster looks whether it reaches the machine at
	// Advertise. Join closes it. Nil: the cluster does not look.
	Listener net.Listener
}

// Enrolment is a node that belongs to its cluster and has no files yet.
type Enrolment struct {
	Shards   int // the number of shards that its store must have; 0 where that is known
	identity *peer.Identity
	d        directory
}

// Node is its id.
func (e *Enrolment) Node() peer.NodeID { return e.identity.Node() }

// Join asks the cluster that a key names to take this machine in. Nothing is written here.
func Join(ctx context.Context, o Joining) (*Enrolment, error) {
	return joinBy(ctx, peer.JoinClient(o.Key), o)
}

func joinBy(ctx context.Context, client *http.Client, o Joining) (*Enrolment, error) {
	word := ""
	if o.Listener != nil {
		defer func() { _ = o.Listener.Close() }()
		word = rand.Text()
		go say(o.Listener, word)
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	csr, err := identity.CSR()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(joinRequest{
		ID: o.Key.ID, Secret: o.Key.Secret, Node: identity.Node(), CSR: csr,
		Address: o.Advertise, Version: o.Version, Level: levelHere, Clock: time.Now(), Word: word,
	})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://cluster/join", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reach the node that made the key, at %s: %w; a key of another node would do as well", o.Key.Address, errors.Unwrap(err))
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, callBytesMax))
	if err != nil {
		return nil, fmt.Errorf("read the answer of the cluster: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the cluster at %s refuses: %s", o.Key.Address, bytes.TrimSpace(text))
	}
	var answer joinAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("read the answer of the cluster: %w", err)
	}
	authority, err := peer.ParseAuthority([]byte(answer.Authority))
	if err != nil {
		return nil, err
	}
	e := &Enrolment{Shards: answer.Shards, identity: identity, d: directory{Authority: answer.Authority, Nodes: map[peer.NodeID]member{}}}
	for id, address := range answer.Nodes {
		e.d.Nodes[id] = member{Address: address}
	}
	return e, identity.Accept(answer.Certificate, authority.Certificate())
}

// Save writes the node's files, into a folder that is made.
func (e *Enrolment) Save(dir string) error { return save(dir, e.identity, &e.d) }

// Found makes the store, which stands alone and is open, the first node of a new cluster, and writes the node's files.
// After a crash it is called again, and goes on.
func Found(s *persistence.Store, dir, advertise string) (peer.NodeID, error) {
	identity, err := peer.LoadIdentity(files{dir}.path(IdentityFile))
	var authority *peer.Authority
	if err == nil {
		authority, err = files{dir}.authority()
	} else if !Exists(dir) {
		identity, authority, err = found()
	}
	if err != nil {
		return "", err
	}
	d, err := firstDirectory(authority, identity.Node(), advertise, slices.Collect(s.AllShards()))
	if err != nil {
		return "", err
	}
	if err := save(dir, identity, d); err != nil {
		return "", err
	}
	w := s.NewWrites(key.Meta)
	if err := d.put(w); err != nil {
		w.Discard()
		return "", err
	}
	done := make(outcome, 1)
	s.Append(w, done)
	if err := <-done; err != nil {
		return "", err
	}
	return identity.Node(), s.Bootstrap(string(identity.Node()))
}

func firstDirectory(authority *peer.Authority, id peer.NodeID, address string, shards []key.Shard) (*directory, error) {
	text, err := authority.Marshal()
	if err != nil {
		return nil, err
	}
	return &directory{
		Authority: string(text),
		Nodes:     map[peer.NodeID]member{id: {Address: address, Joined: time.Now().UTC(), Started: true, Level: levelHere}},
		Level:     levelHere,
		Placement: place(nil, shards, []peer.NodeID{id}, 1),
	}, nil
}

// NewAgain makes the only node of a new cluster, whose store has the shards of an earlier one. The caller founds their
// groups again for it, and saves it.
func NewAgain(advertise string) (*Enrolment, error) {
	identity, authority, err := found()
	if err != nil {
		return nil, err
	}
	d, err := firstDirectory(authority, identity.Node(), advertise, nil)
	if err != nil {
		return nil, err
	}
	return &Enrolment{identity: identity, d: *d}, nil
}

func (n *Node) refound(d *directory) bool {
	if !n.isOfAnother(d) {
		return false
	}
	authority, err := n.files.authority()
	if err != nil || authority.Cluster() != n.identity.Cluster() {
		return false
	}
	first, err := firstDirectory(authority, n.self, n.o.Advertise, slices.Collect(n.store.AllShards()))
	if err != nil {
		return false
	}
	first.Level = d.Level
	for id := range d.Nodes {
		if id != n.self {
			first.Gone = append(first.Gone, id)
		}
	}
	n.o.Log.Warn().Str("cluster", string(n.identity.Cluster())).Msg("this node is the first of a new cluster, with what it had of the earlier one")
	*d = *first.clone()
	return true
}
