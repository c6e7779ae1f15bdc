package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
)

// whole reports whether all nodes are as they should be for good: shards complete, leaderships
// even.
func (w *world) whole(nodes int) bool { return w.complete(nodes, 1) }

// complete reports whether each node has the shards in which it votes and Meta, and no others, at most three vote in
// each, and leaderships differ by so many at most.
func (w *world) complete(nodes, uneven int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.nodes) != nodes {
		return false
	}
	for _, p := range w.nodes {
		status := p.Status()
		if len(status.Nodes) != nodes || len(status.Short) > 0 {
			return false
		}
		least, most := 100, 0
		for _, n := range status.Nodes {
			least, most = min(least, n.Led), max(most, n.Led)
			if !n.Alive || !n.Voter || n.Lag > lagMax || n.Held != p.share(n.ID) {
				return false
			}
		}
		for sh, g := range p.store.Groups() {
			if p.directory.Load().divides(sh, key.Shard(g.Last())) != 0 {
				return false
			}
		}
		for _, sh := range p.led() {
			learners := 0
			if sh == key.Meta {
				learners = nodes - min(3, nodes)
			}
			if have := p.replicas(sh); len(have.voters) != min(3, nodes) || len(have.learners) != learners {
				return false
			}
		}
		if most-least > uneven {
			return false
		}
	}
	return true
}

// share is how many shards a node shall have.
func (n *Node) share(id peer.NodeID) (shards int) {
	d := n.directory.Load()
	for sh := range n.store.AllShards() {
		if d.wanted(d.first(sh)).has(id) {
			shards++
		}
	}
	return shards
}

func (w *world) awaitRemoved(p *process) {
	w.t.Helper()
	w.await("the end of the removed node", func() bool {
		select {
		case err := <-p.Failed():
			return errors.Is(err, errRemoved)
		default:
			return false
		}
	})
	begun := time.Now()
	_, err := p.Leader(w.t.Context(), key.Meta)
	assert.ErrorIs(w.t, err, failure.ErrUnavailable, "the leader that a removed node knows")
	assert.Zero(w.t, time.Since(begun), "a request at a removed node waited")
	p.stop(false)
}

func (w *world) currentEverywhere() {
	w.t.Helper()
	for _, p := range w.nodes {
		for sh := range p.store.AllShards() {
			epoch := p.store.Epoch(sh)
			err := p.Current(w.t.Context(), sh)
			switch {
			case sh == key.Meta:
				assert.NoError(w.t, err, shown(sh))
			case p.store.Epoch(sh) != epoch: // it was handed over meanwhile
			case epoch != 0:
				assert.NoError(w.t, err, shown(sh))
			default:
				assert.ErrorIs(w.t, err, failure.ErrNotLeader, shown(sh))
			}
		}
	}
}

// TestAShardThatIsNotHere is read where it is led, and every node knows where that is.
func TestAShardThatIsNotHere(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		a := w.first()
		for range 3 {
			w.join(a)
		}
		w.await("four nodes", func() bool { return w.whole(4) })
		w.currentEverywhere()
		without := 0
		for _, p := range w.nodes {
			for sh := range p.store.AllShards() {
				if p.store.Replica(sh) == nil {
					without++
				}
				leader, err := p.Leader(t.Context(), sh)
				assert.True(t, err == nil && w.nodes[leader].store.Epoch(sh) != 0, "%s for node %s: the leader is %q, %v", shown(sh), p.self, leader, err)
			}
		}
		assert.Equal(t, 2, without, "replicas that are not on one of four nodes, of three of each of two shards")
	})
}

// TestARemovalIsWrittenBeforeItIsTold: else a node would give its folder up for a removal that may be refused.
func TestARemovalIsWrittenBeforeItIsTold(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		told := 0
		w.dismissed = func(by *Node, id peer.NodeID) error {
			if told++; !by.isGone(id) {
				t.Error("a node is told of a removal that is not written")
			}
			return nil
		}
		a := w.first()
		b := w.join(a)
		w.await("two nodes", func() bool { return w.whole(2) })
		w.check(a.Remove(t.Context(), b.self, false))
		w.awaitRemoved(b)
		assert.NotZero(t, told, "it was not told")
	})
}

// TestARefusalOfFew: one node that takes no certificate, or fits nobody, does not end those whom the others take.
func TestARefusalOfFew(t *testing.T) {
	refused := fmt.Errorf("call a node: %w", peer.ErrRefused)
	expired := fmt.Errorf("call a node: %w", peer.ErrExpired)
	unfit := failure.Refuse(errUnfit, "no")
	for _, c := range []struct {
		faults map[peer.NodeID]error
		others int
		want   bool
	}{
		{nil, 2, false},
		{map[peer.NodeID]error{"b": refused}, 2, false},
		{map[peer.NodeID]error{"b": refused, "c": errSilent}, 2, false},
		{map[peer.NodeID]error{"b": refused, "c": refused}, 2, true},
		{map[peer.NodeID]error{"b": refused}, 1, true},
		{map[peer.NodeID]error{"b": refused, "c": refused}, 4, false},
		{map[peer.NodeID]error{"b": refused, "c": refused, "d": refused}, 4, true},
		{map[peer.NodeID]error{"b": failure.Refuse(failure.ErrForbidden, "no")}, 4, true},
		{map[peer.NodeID]error{"b": expired, "c": errSilent}, 2, false},
		{map[peer.NodeID]error{"b": expired, "c": refused}, 2, true},
		{map[peer.NodeID]error{"b": unfit}, 2, false},
		{map[peer.NodeID]error{"b": unfit, "c": errSilent}, 2, false},
		{map[peer.NodeID]error{"b": unfit}, 1, true},
		{map[peer.NodeID]error{"b": unfit, "c": unfit}, 2, true},
	} {
		n := &Node{self: "a", seeds: map[peer.NodeID]string{"a": ""}}
		for i := range c.others {
			n.seeds[peer.NodeID("bcde"[i:i+1])] = ""
		}
		err := n.refusedBy(c.faults, peer.ErrRefused, peer.ErrExpired)
		assert.Equal(t, c.want, err != nil, "%v of %d others: got %v, want an error", c.faults, c.others, err)
	}
}

func ulidOf(t *testing.T) string {
	t.Helper()
	identity, err := newIdentity()
	require.NoError(t, err)
	return string(identity.Node())
}

// TestWhatIsSaidAtAnAddress: a machine that wants to join is told from others by a word.
func TestWhatIsSaidAtAnAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	said := make(chan struct{})
	go func() {
		defer close(said)
		say(l, "it is me")
	}()
	for range 2 {
		word, err := listenTo(t.Context(), l.Addr().String())
		assert.True(t, err == nil && word == "it is me", "got %q, %v", word, err)
	}
	// NB: the near end of a connection listens nowhere, and nobody else can at its port.
	near, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}).Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = near.Close() }()
	assert.NoError(t, l.Close())
	<-said
	word, err := listenTo(t.Context(), near.LocalAddr().String())
	assert.Error(t, err, "got %q where nobody is", word)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := silent.Accept()
		cancel()
		if err == nil {
			defer func() { _ = conn.Close() }()
			_, _ = conn.Read(make([]byte, 1))
		}
	}()
	word, _ = listenTo(ctx, silent.Addr().String())
	assert.Empty(t, word)
}

// TestACopyOfANodeEnds: the process that came first goes on.
func TestACopyOfANodeEnds(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		a := w.first()
		b := w.join(a)
		w.await("two nodes", func() bool { return w.whole(2) })
		twin := &process{w: w, dir: b.dir, disk: b.disk, address: "elsewhere:9400"}
		begun := time.Now()
		err := twin.start()
		assert.True(t, err != nil && strings.Contains(err.Error(), "another process is node "+string(b.self)+" already"), "the copy starts: %v", err)
		assert.LessOrEqual(t, time.Since(begun), 15*time.Second, "the copy ended")
		select {
		case err := <-b.Failed():
			t.Errorf("the node itself ends: %v", err)
		default:
		}
		// A crash is no copy: the next process of the node comes at once.
		b.stop(false)
		w.check(b.start())
		w.await("two nodes again", func() bool { return w.whole(2) })
		// A copy that could not reach anybody at its start ends when it does.
		b.vanish()
		clocktest.Advance(5 * time.Second)
		other := &process{w: w, dir: b.dir, disk: replicatest.StoreOptions("copy", 2), address: "elsewhere:9400"}
		b.isolate(false)
		w.check(other.startNode())
		w.mu.Lock()
		w.nodes[b.self] = other
		w.mu.Unlock()
		other.sendHeartbeats(t.Context())
		w.await("the end of the one that came later", func() bool {
			select {
			case err := <-b.Failed():
				return strings.Contains(err.Error(), "another process is node")
			default:
				other.sendHeartbeats(t.Context())
				return false
			}
		})
		w.check(other.Stop(t.Context()))
		w.check(b.Stop(t.Context()))
		w.check(b.store.Close())
		b.forget()
	})
}

// TestANewClusterFromOneNode: when most nodes are lost with their disks, the rest begins anew, and
// whoever comes back from before has no part in it.
func TestANewClusterFromOneNode(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		a, b, c := w.three()
		w.await("nodes that were removed before", func() bool {
			return slices.ContainsFunc([]*process{a, b, c}, func(p *process) bool { // one of them leads
				return p.change(t.Context(), func(d *directory) error {
					d.Gone = []peer.NodeID{"01", "02", "03", "04", "05"}
					return nil
				}) == nil
			})
		})
		w.check(storeWrite(t, a, "kept"))
		w.check(c.Current(t.Context(), key.Meta))
		for _, p := range []*process{a, b, c} {
			p.stop(false)
		}
		again, err := NewAgain(c.address)
		w.check(err)
		missing, err := persistence.Recover("store", c.options(nil), string(again.Node()))
		require.True(t, err == nil && len(missing) <= 0, "missing %v: %v", missing, err)
		w.check(again.Save(c.dir))
		w.check(c.start())
		w.await("one node alone", func() bool { return w.whole(1) })
		_, err = c.store.Load(key.Setting(nil, "kept"))
		assert.NoError(t, err, "what was acknowledged is gone")
		d := w.join(c)
		w.await("two nodes", func() bool { return w.whole(2) })
		assert.True(t, c.identity.Cluster() != a.identity.Cluster() && d.identity.Cluster() == c.identity.Cluster(), "the new cluster has the old one's name")
		assert.Contains(t, d.directory.Load().Gone, a.self, "a node of the old cluster may come in")
	})
}

func storeWrite(t *testing.T, p *process, name string) error {
	t.Helper()
	for _, q := range p.w.nodes {
		if epoch := q.store.Epoch(key.Meta); epoch != 0 {
			writes := q.store.NewBatchIn(key.Meta, epoch)
			writes.Set(key.Setting(nil, name), []byte("value"))
			return q.append(t.Context(), writes)
		}
	}
	return errSilent
}

// TestFilesAreReplacedAsAWhole: what a crash has left beside a file is of no use, and its mode neither. The
// authority's file has its key.
func TestFilesAreReplacedAsAWhole(t *testing.T) {
	f := files{t.TempDir()}
	for _, name := range []string{nodesFile, authorityFile} {
		require.NoError(t, os.WriteFile(f.path(name+".tmp"), []byte("half"), 0o644))
	}
	require.NoError(t, f.keep(&directory{Authority: "the authority"}))
	for name, want := range map[string]string{nodesFile: "{}", authorityFile: "the authority"} {
		info, err := os.Stat(f.path(name))
		require.NoError(t, err)
		if text, err := os.ReadFile(f.path(name)); err != nil || string(text) != want || info.Mode() != 0o600 {
			t.Errorf("%s: got %q of mode %v, %v, want %q of mode 0600", name, text, info.Mode(), err, want)
		}
		_, err = os.Stat(f.path(name + ".tmp"))
		assert.ErrorIs(t, err, fs.ErrNotExist, "beside %s", name)
	}
}
