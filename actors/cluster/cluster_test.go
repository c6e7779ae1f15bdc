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
	"testing/synctest"
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

// complete reports whether each node has every shard, at most three have a vote in it, and leaderships
// differ by so many at most.
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
			if !n.Alive || !n.Voter || n.Lag > lagMax || n.Held != w.shards+1 {
				return false
			}
		}
		for _, sh := range p.led() {
			if have := p.replicas(sh); len(have.voters) != min(3, nodes) || len(have.learners) != nodes-len(have.voters) {
				return false
			}
		}
		if most-least > uneven {
			return false
		}
	}
	return true
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
	p.stop(false)
}

// TestANodeAfterTheOther: a cluster grows to four nodes, loses one with its disk, takes a new one,
// and lets one go.
func TestANodeAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		defer w.end()
		a := w.first()
		w.await("one node alone", func() bool { return w.whole(1) })
		b := w.join(a)
		w.await("two nodes", func() bool { return w.whole(2) })
		c := w.join(b)
		w.await("three nodes", func() bool { return w.whole(3) })
		for _, p := range []*process{a, b, c} {
			for sh := range p.store.AllShards() {
				if err := p.Current(t.Context(), sh); err != nil {
					t.Errorf("%s: %v", shown(sh), err)
				}
			}
		}
		d := w.join(a)
		w.await("four nodes", func() bool { return w.whole(4) })

		b.stop(false)
		w.await("leaders for all shards", func() bool {
			return !a.isAlive(b.self) && !c.isAlive(b.self) && !slices.ContainsFunc(slices.Collect(a.store.AllShards()), func(sh key.Shard) bool {
				return a.Current(t.Context(), sh) != nil && a.store.Replica(sh) != nil
			})
		})
		assert.Error(t, c.Remove(t.Context(), b.self, false), "a node that does not answer was to be removed as if it ran")
		w.check(c.Remove(t.Context(), b.self, true))
		w.await("three nodes again", func() bool { return w.whole(3) })
		e := w.join(d)
		w.await("four nodes again", func() bool { return w.whole(4) })

		assert.Error(t, e.Remove(t.Context(), a.self, true), "a node that runs was to be removed as lost")
		w.check(e.Remove(t.Context(), a.self, false))
		w.awaitRemoved(a)
		w.await("three nodes at the end", func() bool { return w.whole(3) })
		assert.ErrorIs(t, b.start(), peer.ErrRefused, "a node that was removed starts")
	})
}

func (w *world) currentEverywhere() {
	w.t.Helper()
	for _, p := range w.nodes {
		for sh := range p.store.AllShards() {
			if err := p.Current(w.t.Context(), sh); err != nil {
				w.t.Errorf("%s: %v", shown(sh), err)
			}
		}
		id, err := p.Complete()
		assert.True(w.t, err == nil && id == p.self, "lists of node %s go to %q, %v", p.self, id, err)
	}
}

// TestFiveNodesKeepEveryShard: three of them vote in each, while one is replaced in peace and one after
// the loss of its disk.
func TestFiveNodesKeepEveryShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		defer w.end()
		a := w.first()
		b, c, d, e := w.join(a), w.join(a), w.join(a), w.join(a)
		const uneven = 100 // who votes in few shards of another's gets few of its leaderships
		w.await("five nodes", func() bool { return w.complete(5, uneven) })
		w.currentEverywhere()

		f := w.join(b)
		w.await("six nodes", func() bool { return w.complete(6, uneven) })
		w.check(c.Remove(t.Context(), a.self, false))
		w.awaitRemoved(a)
		w.await("five nodes, one of them new", func() bool { return w.complete(5, uneven) })
		w.currentEverywhere()

		b.stop(false)
		w.await("the silence of the lost node", func() bool { return !d.isAlive(b.self) && !e.isAlive(b.self) })
		w.check(f.Remove(t.Context(), b.self, true))
		w.await("four nodes", func() bool { return w.complete(4, uneven) })
		w.join(e)
		w.await("five nodes again", func() bool { return w.complete(5, uneven) })
		w.currentEverywhere()
	})
}

// TestListsOfWhoStillCopies: another node answers them, as long as there is one that has everything.
func TestListsOfWhoStillCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
		a := w.first()
		b, c, d := w.join(a), w.join(a), w.join(a)
		w.await("four nodes", func() bool { return w.whole(4) })
		w.currentEverywhere()
		others := []*process{a, b, c}

		// It is as one that has joined, and to which nobody sends anything yet.
		d.HandOver(t.Context())
		w.check(d.Stop(t.Context()))
		w.await("nobody who takes it in", func() bool {
			return !slices.ContainsFunc(others, func(p *process) bool { return p.isAlive(d.self) })
		})
		w.await("a shard without it", func() bool {
			return slices.ContainsFunc(others, func(p *process) bool {
				return p.store.Epoch(0) != 0 && p.store.Replica(0).Remove(string(d.self)) == nil
			})
		})
		w.check(d.store.Leave(0))
		for _, what := range []string{"no replica", "an empty replica"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := d.Current(ctx, 0)
			of := failure.Of(err)
			assert.True(t, of.Kind == failure.ErrNotLeader && of.Shard == uint16(key.EveryShard), "%s: got %v, want ErrNotLeader for all shards", what, err)
			id, err := d.Complete()
			assert.True(t, err == nil && id != d.self, "%s: lists go to %q, %v", what, id, err)
			leader, err := d.Leader(ctx, 0)
			assert.True(t, err == nil && leader != d.self, "%s: the leader is %q, %v", what, leader, err)
			if held := slices.IndexFunc(d.Status().Nodes, func(n NodeStatus) bool { return n.ID == d.self && n.Held == 2 }); held < 0 {
				t.Errorf("%s: it holds another number of shards than 2: %+v", what, d.Status().Nodes)
			}
			assert.NoError(t, d.Current(ctx, 1), "%s: another shard", what)
			cancel()
			w.check(d.store.Join(0))
		}
		for _, p := range others {
			p.stop(false)
		}
		w.await("nobody else", func() bool {
			return !slices.ContainsFunc(others, func(p *process) bool { return d.isAlive(p.self) })
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, d.Current(ctx, 0), failure.ErrUnavailable, "with nobody else")
		id, err := d.Complete()
		assert.ErrorIs(t, err, failure.ErrUnavailable, "with nobody else: lists go to %q", id)
	})
}

// TestWhoLeavesGivesAllAway: a node that does not vote in Meta leads shards still when it is to go.
func TestWhoLeavesGivesAllAway(t *testing.T) {
	for phase := range 5 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4)
			defer w.end()
			a := w.first()
			b, c, d := w.join(a), w.join(a), w.join(a)
			w.await("four nodes", func() bool { return w.whole(4) })
			clocktest.Advance(time.Duration(phase) * paceDefault / 5)
			leaving := d
			for _, p := range []*process{b, c, d} {
				if !slices.Contains(p.directory.Load().Placement[key.Meta], p.self) {
					leaving = p
				}
			}
			w.check(a.Remove(t.Context(), leaving.self, false))
			w.awaitRemoved(leaving)
			w.await("three nodes", func() bool { return w.whole(3) })
		})
	}
}

// TestARemovalIsWrittenBeforeItIsTold: else a node would give its folder up for a removal that may be refused.
func TestARemovalIsWrittenBeforeItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
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

// TestANodeThatIsNotToldOfItsRemoval: it learns from the others, which refuse it.
func TestANodeThatIsNotToldOfItsRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
		w.dismissed = func(*Node, peer.NodeID) error { return errSilent }
		a := w.first()
		w.join(a)
		c := w.join(a)
		w.await("three nodes", func() bool { return w.whole(3) })
		w.check(a.Remove(t.Context(), c.self, false))
		w.await("its end", func() bool {
			select {
			case err := <-c.Failed():
				assert.ErrorIs(t, err, peer.ErrRefused)
				return true
			default:
				return false
			}
		})
		c.stop(false)
		w.await("two nodes", func() bool { return w.whole(2) })
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

// TestWhoHandsOverLeadsNothing: and the others lead at once (persistence/PROMISES.md, "P26").
func TestWhoHandsOverLeadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
		a, b, c := w.three()
		begun := time.Now()
		a.HandOver(t.Context())
		assert.Empty(t, a.led(), "it leads %v still", a.led())
		w.await("all led", func() bool { return len(b.led())+len(c.led()) == 3 })
		assert.LessOrEqual(t, time.Since(begun), 500*time.Millisecond, "it took")
		clocktest.Advance(10 * time.Second)
		assert.Empty(t, a.led(), "it was given %v again", a.led())
	})
}

// TestWhoHasJustComeLeadsNothing: a node that is back is given shards when it has been heard for a while, and not when it
// was heard before its end.
func TestWhoHasJustComeLeadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
		a, b, c := w.three()
		c.stop(true)
		w.check(c.start())
		back := time.Now()
		w.await("the node that is back", func() bool { return a.isAlive(c.self) && b.isAlive(c.self) })
		for time.Since(back) < 5*time.Second {
			led := c.led()
			require.Empty(t, led, "it was given %v, %s after its start", led, time.Since(back))
			clocktest.Advance(100 * time.Millisecond)
		}
		w.await("its part", func() bool { return w.whole(3) })

		c.stop(true)
		w.check(c.start())
		w.await("the node that is back again", func() bool { return a.isAlive(c.self) })
		a.stop(true)
		led := c.led()
		assert.Empty(t, led, "who stops has handed %v to the one that has just come", led)
		w.check(a.start())
	})
}

// TestWhoMayNotJoin: a key opens the cluster once, in its time, to a machine that fits.
func TestWhoMayNotJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
		a := w.first()
		w.await("one node alone", func() bool { return w.whole(1) })
		used, old := w.invite(a, time.Hour), w.invite(a, time.Minute)
		_, err := w.joinAs(a, used)
		require.NoError(t, err)
		clocktest.Advance(2 * time.Minute)
		stranger := old
		stranger.ID = "0123456789abcdef"
		forged := w.invite(a, time.Hour)
		forged.Secret = old.Secret
		for _, c := range []struct {
			what string
			key  peer.JoinKey
			want string
		}{
			{"a key that was used", used, "was used already, by node "},
			{"an old key", old, "expired at "},
			{"a key of another cluster", stranger, "does not know the join key"},
			{"a key with another secret", forged, "does not know the join key"},
		} {
			before := a.directory.Load()
			_, err := w.joinAs(a, c.key)
			assert.True(t, err != nil && strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "\n"), "%v %v %v", c.what, err, c.want)
			assert.Equal(t, before, a.directory.Load(), "%s: the cluster has changed", c.what)
		}
		w.words = map[string]string{"taken:1": "somebody else"}
		good := joinRequest{ID: "x", Node: peer.NodeID(ulidOf(t)), Address: "there:1", Version: "next", Level: levelHere, Clock: time.Now()}
		invited := func(r *joinRequest) {
			key := w.invite(a, time.Hour)
			r.ID, r.Secret = key.ID, key.Secret
		}
		for _, c := range []struct {
			what string
			edit func(*joinRequest)
			want string
		}{
			{"no node", func(r *joinRequest) { r.Node = "me" }, "neither who it is"},
			{"no address", func(r *joinRequest) { r.Address = "" }, "nor where"},
			{"a version far ahead", func(r *joinRequest) { invited(r); r.Level = levelHere + 2 }, fmt.Sprintf("the new node runs version next of level %d, and the cluster test of level %d", levelHere+2, levelHere)},
			{"a clock ahead", func(r *joinRequest) { invited(r); r.Clock = r.Clock.Add(2 * time.Minute) }, "the clock of the new node is 2m0s ahead of"},
			{"a clock behind", func(r *joinRequest) { invited(r); r.Clock = r.Clock.Add(-time.Hour) }, "the clock of the new node is 1h0m0s behind that of the cluster: set it"},
			{"the address of another", func(r *joinRequest) {
				invited(r)
				r.Address = a.address
			}, "has the address " + a.address},
			{"the id of another", func(r *joinRequest) {
				invited(r)
				r.Node = a.self
			}, "there is a node "},
			{"an address where nobody is", func(r *joinRequest) {
				invited(r)
				r.Word = "me"
			}, "cannot be reached at there:1: "},
			{"an address where another process is", func(r *joinRequest) {
				invited(r)
				r.Word, r.Address = "me", "taken:1"
			}, "another process answers at taken:1"},
			{"an address without an end", func(r *joinRequest) { r.Address = strings.Repeat("x", 300) }, "nor where"},
			{"no key, and a version far ahead", func(r *joinRequest) { r.Level = levelHere + 2 }, "does not know the join key"},
			{"no key, and a clock ahead", func(r *joinRequest) { r.Clock = r.Clock.Add(2 * time.Minute) }, "does not know the join key"},
			{"no key, and an address to be looked at", func(r *joinRequest) { r.Word = "me" }, "does not know the join key"},
			{"no request to sign", invited, "sign the certificate"},
		} {
			request := good
			c.edit(&request)
			nodes := len(a.directory.Load().Nodes)
			_, err := a.admit(t.Context(), "", request)
			assert.True(t, err != nil && strings.Contains(err.Error(), c.want), "%s: got %v, want %q", c.what, err, c.want)
			assert.Len(t, a.directory.Load().Nodes, nodes, "%s: the cluster has changed", c.what)
		}
	})
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
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
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

// TestWhoIsCutOffKnowsIt: it says so after three seconds, and that it is not ready after five.
func TestWhoIsCutOffKnowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
		a, b, c := w.three()
		for _, p := range []*process{a, b, c} {
			if !p.Fresh() || p.Ready() != nil {
				t.Errorf("node %s is not fresh or not ready: %v", p.address, p.Ready())
			}
		}
		for _, p := range []*process{a, b, c} { // NB: one of them leads Meta
			p.isolate(true)
			clocktest.Advance(3500 * time.Millisecond)
			assert.False(t, p.Fresh(), "node %s is cut off and does not know", p.address)
			clocktest.Advance(5 * time.Second)
			assert.Error(t, p.Ready(), "node %s is cut off and says it is ready", p.address)
			assert.NotEmpty(t, p.Status().Short, "node %s sees nobody and no shard that is short", p.address)
			for _, q := range []*process{a, b, c} {
				if q != p && (!q.Fresh() || q.Ready() != nil) {
					t.Errorf("node %s is not cut off, and is not ready: %v", q.address, q.Ready())
				}
			}
			p.isolate(false)
			w.await("all is well again", func() bool { return w.whole(3) && p.Fresh() && p.Ready() == nil })
		}
	})
}

// TestAClockOfThePast: a node that takes nobody's certificate does not start, and one that runs waits for
// its clock to be set.
func TestAClockOfThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.end()
		a := w.first()
		b := w.join(a)
		w.join(a)
		w.await("three nodes", func() bool { return w.whole(3) })
		b.past.Store(true)
		clocktest.Advance(time.Minute)
		select {
		case err := <-b.Failed():
			t.Errorf("a node that runs ends: %v", err)
		default:
		}
		b.stop(false)
		err := b.startNode()
		assert.True(t, err != nil && strings.Contains(err.Error(), "this node cannot run beside the others: call node ") && !strings.Contains(err.Error(), "\n"), err)
		b.past.Store(false)
		w.check(b.start())
		w.await("three nodes again", func() bool { return w.whole(3) })
	})
}

// TestWithoutALeaderCommandsEnd: after 10 s, with a line that says why.
func TestWithoutALeaderCommandsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.end()
		a, b, c := w.three()
		k := w.invite(a, time.Hour)
		b.stop(false)
		c.stop(false)
		w.await("nobody leads", func() bool { return a.leaderNow(key.Meta) == "" })
		for what, do := range map[string]func(context.Context) error{
			"invite": func(ctx context.Context) error { _, err := a.Invite(ctx, time.Hour); return err },
			"remove": func(ctx context.Context) error { return a.Remove(ctx, b.self, true) },
			"join":   func(context.Context) error { _, err := w.joinAs(a, k); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			begun := time.Now()
			err := do(ctx)
			assert.True(t, err != nil && strings.Contains(err.Error(), "no node leads the cluster's own shard") && !strings.Contains(err.Error(), "\n"),
				"%s: got %v, want one line that nobody leads", what, err)
			assert.LessOrEqual(t, time.Since(begun), 11*time.Second, "%s: it ended", what)
			cancel()
		}
		w.check(b.start())
		w.check(c.start())
	})
}

// TestANewClusterFromOneNode: when most nodes are lost with their disks, the rest begins anew, and
// whoever comes back from before has no part in it.
func TestANewClusterFromOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.end()
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
