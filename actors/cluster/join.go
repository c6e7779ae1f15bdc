package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
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
	shards   int // that its store must have; 0 where the store is there
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
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the node that made the key, at %s, is stopping or has too many joins at once: try again, or with a key of another node", o.Key.Address)
	}
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
	e := &Enrolment{shards: answer.Shards, identity: identity, d: directory{Authority: answer.Authority, Nodes: map[peer.NodeID]member{}}}
	for id, address := range answer.Nodes {
		e.d.Nodes[id] = member{Address: address}
	}
	return e, identity.Accept(answer.Certificate, authority.Certificate())
}

// Save writes the node's files, into a folder that is made.
func (e *Enrolment) Save(dir string) error {
	if e.shards != 0 {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := (files{dir}).write(shardsFile, fmt.Appendln(nil, e.shards)); err != nil {
			return err
		}
	}
	return save(dir, e.identity, &e.d)
}

// Found makes the store, which is standalone and is open, the first node of a new cluster, and writes the node's files.
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
	groups := beginnings(int(s.Shards()))
	d, err := firstDirectory(authority, identity.Node(), advertise, groups)
	if err != nil {
		return "", err
	}
	if err := save(dir, identity, d); err != nil {
		return "", err
	}
	w := s.NewBatch(key.Meta)
	if err := d.put(w); err != nil {
		w.Discard()
		return "", err
	}
	if err := s.Commit(w); err != nil {
		return "", err
	}
	return identity.Node(), s.Bootstrap(string(identity.Node()), groups)
}

// firstDirectory is that of a cluster of one node. No groups: nothing is said of them.
func firstDirectory(authority *peer.Authority, id peer.NodeID, address string, groups []key.Shard) (*directory, error) {
	text, err := authority.Marshal()
	if err != nil {
		return nil, err
	}
	placement := map[key.Shard][]peer.NodeID{}
	if groups != nil {
		placement = place(nil, append(slices.Clone(groups), key.Meta), []peer.NodeID{id}, 1, nil)
	}
	return &directory{
		Authority: string(text),
		Nodes:     map[peer.NodeID]member{id: {Address: address, Joined: time.Now().UTC(), Started: true, Level: levelHere}},
		Level:     levelHere,
		Groups:    groups,
		Placement: placement,
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
	var groups []key.Shard
	for sh := range n.store.Groups() {
		if sh != key.Meta {
			groups = append(groups, sh)
		}
	}
	first, err := firstDirectory(authority, n.self, n.o.Advertise, groups)
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

// Invite returns the text of a key with which one node can join, until it expires.
func (n *Node) Invite(ctx context.Context, expires time.Duration) (string, error) {
	d := n.directory.Load()
	if d == nil {
		return "", failure.Refuse(failure.ErrUnavailable, "this node does not know its cluster yet")
	}
	authority, err := peer.ParseAuthority([]byte(d.Authority))
	if err != nil {
		return "", err
	}
	key, err := peer.NewJoinKey(n.o.Advertise, authority.Fingerprint())
	if err != nil {
		return "", err
	}
	_, err = Ask(ctx, n, pathInvite, n.takeKey, invitation{ID: key.ID, entry: entry{Hash: peer.Hash(key.Secret), Expires: time.Now().Add(expires)}})
	return key.String(), err
}

func (n *Node) takeKey(ctx context.Context, _ peer.NodeID, key invitation) (struct{}, error) {
	return struct{}{}, n.change(ctx, func(d *directory) error {
		d.Keys[key.ID] = key.entry
		return nil
	})
}

// addressMax bounds an address, in bytes: the longest name of DNS, and a port.
const addressMax = 253 + len(":65535")

func (n *Node) join(w http.ResponseWriter, r *http.Request) {
	var in joinRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, callBytesMax)).Decode(&in); err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	if !n.started.Load() {
		writeError(w, failure.Refuse(failure.ErrUnavailable, "the node is starting"))
		return
	}
	out, err := Ask(r.Context(), n, pathAdmit, n.admit, in)
	if err != nil {
		severity := zerolog.DebugLevel
		n.strangers.Do(func() { severity = zerolog.WarnLevel })
		n.o.Log.WithLevel(severity).Err(err).Str("address", in.Address[:min(len(in.Address), addressMax)]).Msg("a machine that wants to join is refused")
		writeError(w, err)
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (n *Node) admit(ctx context.Context, _ peer.NodeID, in joinRequest) (answer joinAnswer, err error) {
	if _, invalid := peer.ParseNodeID(string(in.Node)); invalid != nil || in.Address == "" || len(in.Address) > addressMax {
		return answer, failure.Refuse(failure.ErrInvalid, "it says neither who it is nor where")
	}
	// NB: before all else, so that nobody without a key learns of the cluster, or has something dialed.
	err = n.change(ctx, func(d *directory) error { return cmp.Or(d.refusal(in), errUnchanged) })
	level := n.levelRefusal("the new node", in.Version, in.Level)
	switch {
	case err != nil:
	case level != nil:
		err = level
	case time.Since(in.Clock).Abs() > clockMax:
		err = refuseClock("the new node", in.Clock)
	default:
		err = n.find(ctx, in)
	}
	if err != nil {
		return answer, err
	}
	err = n.change(ctx, func(d *directory) error {
		if err := d.refusal(in); err != nil {
			return err
		}
		authority, err := peer.ParseAuthority([]byte(d.Authority))
		if err != nil {
			return err
		}
		if answer.Certificate, err = authority.Sign(in.CSR, in.Node, time.Now()); err != nil {
			return failure.Refuse(failure.ErrInvalid, "%w", err)
		}
		key := d.Keys[in.ID]
		key.UsedBy = in.Node
		d.Keys[in.ID] = key
		d.Nodes[in.Node] = member{Address: in.Address, Joined: time.Now().UTC(), Level: in.Level}
		answer.Authority, answer.Shards, answer.Nodes = d.Authority, int(n.store.Shards()), map[peer.NodeID]string{}
		for id, m := range d.Nodes {
			answer.Nodes[id] = m.Address
		}
		return nil
	})
	if err == nil {
		n.o.Log.Info().Str("node", string(in.Node)).Str("address", in.Address).Msg("node has joined the cluster; it gets its shards when it runs")
	}
	return answer, err
}

func (d *directory) refusal(in joinRequest) error {
	key, known := d.Keys[in.ID]
	switch {
	case !known || key.Hash != peer.Hash(in.Secret):
		return failure.Refuse(failure.ErrForbidden, "the cluster does not know the join key; make a new one with `troupe cluster invite`")
	case key.UsedBy != "":
		return failure.Refuse(failure.ErrForbidden, "the join key was used already, by node %s; make a new one with `troupe cluster invite`", key.UsedBy)
	case time.Now().After(key.Expires):
		return failure.Refuse(failure.ErrForbidden, "the join key expired at %s; make a new one with `troupe cluster invite`", key.Expires.UTC().Format(time.RFC3339))
	}
	for id, m := range d.Nodes {
		if m.Address == in.Address {
			return failure.Refuse(failure.ErrForbidden, "node %s has the address %s; remove it first, or listen elsewhere", id, in.Address)
		}
	}
	if _, taken := d.Nodes[in.Node]; taken || slices.Contains(d.Gone, in.Node) {
		return failure.Refuse(failure.ErrForbidden, "there is a node %s already", in.Node)
	}
	return nil
}

// find refuses a machine that the cluster does not reach where it says it is.
func (n *Node) find(ctx context.Context, in joinRequest) error {
	if in.Word == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, findMax)
	defer cancel()
	switch word, err := n.listen(ctx, in.Address); {
	case err != nil:
		return failure.Refuse(failure.ErrInvalid, "the new node cannot be reached at %s: %v; check the network, or give the address where other nodes reach it with --cluster-advertise", in.Address, err)
	case word != in.Word:
		return failure.Refuse(failure.ErrInvalid, "another process answers at %s, not the new node; give the address where other nodes reach it with --cluster-advertise", in.Address)
	}
	return nil
}

func listenTo(ctx context.Context, address string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	word, err := io.ReadAll(io.LimitReader(conn, wordMax))
	if err != nil { // NB: somebody is there, and it is not the new node
		return "", nil
	}
	return string(word), nil
}

// Remove has a node leave the cluster: its shards go to others, then it is removed.
func (n *Node) Remove(ctx context.Context, id peer.NodeID, lost bool) error {
	_, err := Ask(ctx, n, pathRemove, n.remove, removal{id, lost})
	return err
}

func (n *Node) remove(ctx context.Context, _ peer.NodeID, in removal) (struct{}, error) {
	return struct{}{}, n.change(ctx, func(d *directory) error {
		m, known := d.Nodes[in.Node]
		others, silent := 0, []string{}
		for _, id := range d.staying() {
			if id == in.Node {
				continue
			}
			if others++; id != n.self && !n.isAlive(id) {
				silent = append(silent, string(id))
			}
		}
		switch alive := n.isAlive(in.Node); {
		case !known && slices.Contains(d.Gone, in.Node):
			return failure.Refuse(failure.ErrNotFound, "node %s was removed already", in.Node)
		case !known:
			return failure.Refuse(failure.ErrNotFound, "there is no node %s; troupe cluster status lists them", in.Node)
		case others == 0:
			return failure.Refuse(failure.ErrNotAllowed, "node %s is the last one: a cluster has at least one", in.Node)
		case m.Started && !alive && !in.Lost:
			return failure.Refuse(failure.ErrNotAllowed, "node %s does not answer: start it, or give --lost if it will not come back", in.Node)
		case alive && in.Lost:
			return failure.Refuse(failure.ErrNotAllowed, "node %s is running: without --lost its shards are moved away first", in.Node)
		case m.Leaving:
			return errUnchanged
		case 2*len(silent) >= others: // its shards cannot move, and would when nobody expects it any more
			return failure.Refuse(failure.ErrNotAllowed, "too few of the nodes that stay answer, so shards cannot move to them: start, or remove first with --lost: %s", strings.Join(silent, ", "))
		}
		m.Leaving = true
		d.Nodes[in.Node] = m
		return nil
	})
}

func (n *Node) goodbye(context.Context, peer.NodeID, struct{}) (struct{}, error) {
	n.dismissed.Do(func() { close(n.gone) })
	n.fail(errRemoved)
	return struct{}{}, nil
}
