package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

const directorySetting = "cluster"

// Concerns reports whether a row of Meta says what the cluster is.
func Concerns(row key.Parts) bool { return row.Table == "setting" && row.Name == directorySetting }

func (d *directory) staying() []peer.NodeID {
	var ids []peer.NodeID
	for _, id := range slices.Sorted(maps.Keys(d.Nodes)) {
		if m := d.Nodes[id]; m.Started && !m.Leaving {
			ids = append(ids, id)
		}
	}
	return ids
}

func (d *directory) clone() *directory {
	c := *d
	c.Nodes, c.Keys, c.Placement = maps.Clone(d.Nodes), maps.Clone(d.Keys), maps.Clone(d.Placement)
	c.Gone = slices.Clone(d.Gone)
	if c.Keys == nil {
		c.Keys = map[string]entry{}
	}
	return &c
}

func readDirectory(s *persistence.Store) (*directory, error) {
	text, err := s.Load(key.Setting(nil, directorySetting))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := &directory{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("%w: the row of the cluster: %w", persistence.ErrCorrupt, err)
	}
	return d, nil
}

func (d *directory) put(w *persistence.Batch) error {
	text, err := json.Marshal(d)
	if err == nil {
		w.Set(key.Setting(nil, directorySetting), text)
	}
	return err
}

var errUnchanged = errors.New("unchanged")

// change has the directory changed, on the node that leads Meta; any other returns failure.ErrNotLeader. Changes come
// one after the other.
func (n *Node) change(ctx context.Context, edit func(*directory) error) error {
	select {
	case n.changing <- struct{}{}:
		defer func() { <-n.changing }()
	case <-ctx.Done(): // nothing was done
		return failure.Errorf(failure.ErrUnavailable, "%w", ctx.Err())
	}
	epoch := n.store.Epoch(key.Meta)
	if epoch == 0 {
		return failure.Elsewhere(uint16(key.Meta))
	}
	if err := n.store.AwaitLed(ctx, key.Meta, epoch); err != nil {
		if ctx.Err() != nil { // nothing was done
			return failure.Errorf(failure.ErrUnavailable, "%w", err)
		}
		return failure.OfStore(err)
	}
	old, err := readDirectory(n.store)
	if err != nil {
		return failure.OfStore(err)
	}
	if old == nil {
		old = &directory{}
	}
	d := old.clone()
	if err := edit(d); err != nil {
		if errors.Is(err, errUnchanged) {
			return nil
		}
		return err
	}
	w := n.store.NewBatchIn(key.Meta, epoch)
	if err := d.put(w); err != nil {
		w.Discard()
		return err
	}
	if err := n.append(ctx, w); err != nil {
		return failure.OfStore(err)
	}
	n.reread()
	return nil
}

// isOfAnother reports whether a directory is that of an earlier cluster, which this node's own has come out of.
func (n *Node) isOfAnother(d *directory) bool {
	authority, err := peer.ParseAuthority([]byte(d.Authority))
	return err == nil && authority.Cluster() != n.identity.Cluster()
}

func (n *Node) append(ctx context.Context, w *persistence.Batch) error {
	done := make(outcome, 1)
	n.store.Append(w, done)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

type outcome chan error

func (o outcome) Committed(err error) { o <- err }

// Changed implements persistence.Follower.
func (n *Node) Changed(keys [][]byte) {
	for _, rowKey := range keys {
		if k, ok := key.Parse(rowKey); ok && Concerns(k) {
			n.Replaced()
			return
		}
	}
}

// Replaced implements persistence.Follower.
func (n *Node) Replaced() {
	select {
	case n.rereads <- struct{}{}:
	default:
	}
}

// reread takes the newest directory over, and keeps what this node must know before its store is open in files.
func (n *Node) reread() {
	n.rereading.Lock()
	defer n.rereading.Unlock()
	d, err := readDirectory(n.store)
	if err == nil && d != nil && !n.isOfAnother(d) {
		if before := n.directory.Swap(d); before != nil && before.Level != 0 && before.Level < d.Level {
			n.o.Log.Info().Int("level", d.Level).Int("before", before.Level).Msg("all nodes have this level now; a program of a lower one does not run here any more")
		}
		err = n.files.keep(d)
		for _, id := range d.Gone {
			n.port.Disconnect(id)
		}
	}
	if err != nil && !errors.Is(err, persistence.ErrClosed) {
		n.o.Log.Error().Err(err).Msg("what the cluster is cannot be kept")
	}
	n.news()
}

const (
	IdentityFile  = "node.pem"      // IdentityFile has a node's key and certificate
	authorityFile = "authority.pem" // so that a node that was off for long can sign for itself
	nodesFile     = "nodes.json"    // where the others are
	shardsFile    = "shards"        // how many the store of a node that joined must have
)

func (f files) path(name string) string { return filepath.Join(f.dir, name) }

// Exists says whether the folder is that of a node.
func Exists(dir string) bool {
	_, err := os.Stat(files{dir}.path(IdentityFile))
	return !errors.Is(err, fs.ErrNotExist)
}

func (f files) keep(d *directory) error {
	addresses := map[peer.NodeID]string{}
	for id, m := range d.Nodes {
		addresses[id] = m.Address
	}
	text, err := json.MarshalIndent(addresses, "", "  ")
	if err != nil {
		return err
	}
	if err := f.write(nodesFile, text); err != nil {
		return err
	}
	return f.write(authorityFile, []byte(d.Authority))
}

func (f files) write(name string, text []byte) error {
	path := f.path(name)
	if old, err := os.ReadFile(path); err == nil && string(old) == string(text) {
		return nil
	}
	return peer.ReplaceFile(path, text)
}

func (f files) addresses() (map[peer.NodeID]string, error) {
	text, err := os.ReadFile(f.path(nodesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var known map[peer.NodeID]string
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read where the other nodes are: %s: %w; without the file the node waits until they greet it", f.path(nodesFile), err)
	}
	return known, nil
}

// shards returns how many shards the store must have; 0 where none is written.
func (f files) shards() (int, error) {
	text, err := os.ReadFile(f.path(shardsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", f.path(shardsFile), err)
	}
	return n, nil
}

func (f files) authority() (*peer.Authority, error) {
	text, err := os.ReadFile(f.path(authorityFile))
	if err != nil {
		return nil, err
	}
	a, err := peer.ParseAuthority(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path(authorityFile), err)
	}
	return a, nil
}

// save writes the identity last: it makes the files those of a node.
func save(dir string, identity *peer.Identity, d *directory) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f := files{dir}
	if err := f.keep(d); err != nil {
		return err
	}
	return identity.Save(f.path(IdentityFile))
}

func newIdentity() (*peer.Identity, error) {
	return peer.NewIdentity(peer.NodeID(ulid.Make().String()))
}

func found() (*peer.Identity, *peer.Authority, error) {
	now := time.Now()
	authority, err := peer.NewAuthority(peer.ClusterID(ulid.Make().String()), now)
	if err != nil {
		return nil, nil, err
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, nil, err
	}
	return identity, authority, sign(authority, identity, now)
}

func sign(authority *peer.Authority, identity *peer.Identity, now time.Time) error {
	csr, err := identity.CSR()
	if err != nil {
		return err
	}
	certificate, err := authority.Sign(csr, identity.Node(), now)
	if err != nil {
		return err
	}
	return identity.Accept(certificate, authority.Certificate())
}

var errRemoved = errors.New("this node was removed from the cluster; its folder is no longer needed")

const renewEvery = time.Hour

func (n *Node) renewLoop() {
	n.every(renewEvery, func(ctx context.Context) {
		if err := n.renew(); err != nil {
			n.o.Log.Error().Err(err).Msg("the node's certificate cannot be renewed")
		}
		if n.store.Epoch(key.Meta) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, keepMax)
		defer cancel()
		err := n.change(ctx, func(d *directory) error {
			authority, err := peer.ParseAuthority([]byte(d.Authority))
			if err != nil {
				return err
			}
			renewed, err := authority.Renewed(time.Now())
			if err == nil && renewed == authority {
				err = errUnchanged
			}
			if err != nil {
				return err
			}
			text, err := renewed.Marshal()
			d.Authority = string(text)
			return err
		})
		if err != nil && !errors.Is(err, failure.ErrNotLeader) {
			n.o.Log.Error().Err(err).Msg("the certificate of the cluster's authority cannot be renewed")
		}
	})
}

func (n *Node) renew() error {
	now := time.Now()
	if !n.identity.NeedsRenewal(now) {
		return nil
	}
	authority, err := n.files.authority()
	if err == nil { // NB: its own certificate may be one of the future too, and here nobody else is needed
		authority, err = authority.Renewed(now)
	}
	if err == nil {
		err = sign(authority, n.identity, now)
	}
	if err == nil {
		err = n.identity.Save(n.files.path(IdentityFile))
	}
	if err == nil {
		n.o.Log.Info().Time("expires", n.identity.Expires()).Msg("the node's certificate is renewed")
	}
	return err
}

// levelHere is what this program can do together with others. It goes up when programs of the level before cannot work
// with what this one sends or writes. It does so once all nodes have the level (directory).
//
//	1  the first, of version 0.1.0
const levelHere = 1

// Programs that are not releases can have one version and different levels.
func (n *Node) levelRefusal(who, version string, has int) error {
	if d := n.directory.Load(); d != nil && has < d.Level {
		return failure.Refuse(errUnfit, "%s runs version %s of level %d, and all nodes of the cluster have had level %d: start it with a newer program", who, version, has, d.Level)
	}
	if has > n.level+1 || has < n.level-1 {
		return failure.Refuse(errUnfit, "%s runs version %s of level %d, and the cluster %s of level %d: only levels that are next to each other run together", who, version, has, n.o.Version, n.level)
	}
	return nil
}

func (d *directory) levelOfAll() int {
	lowest := math.MaxInt
	for _, m := range d.Nodes {
		lowest = min(lowest, m.Level)
	}
	if len(d.Nodes) == 0 {
		return d.Level
	}
	return max(d.Level, lowest)
}
