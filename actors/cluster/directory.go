package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

const directorySetting = "cluster"

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

func (d *directory) put(w *persistence.Writes) error {
	text, err := json.Marshal(d)
	if err == nil {
		w.Set(key.Setting(nil, directorySetting), text)
	}
	return err
}

var errUnchanged = errors.New("unchanged")

// change has the directory changed, on the node that leads Meta; any other returns failure.ErrElsewhere. Changes come
// one after the other.
func (n *Node) change(ctx context.Context, edit func(*directory) error) error {
	n.changing.Lock()
	defer n.changing.Unlock()
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
	w := n.store.NewWritesIn(key.Meta, epoch)
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

func (n *Node) append(ctx context.Context, w *persistence.Writes) error {
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

// Committed implements persistence.Waiter.
func (o outcome) Committed(err error) { o <- err }

// Changed implements persistence.Follower.
func (n *Node) Changed(keys [][]byte) {
	for _, rowKey := range keys {
		if k, ok := key.Parse(rowKey); ok && k.Table == "setting" && k.Name == directorySetting {
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
