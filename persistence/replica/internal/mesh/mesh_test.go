package mesh

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"go.etcd.io/raft/v3/raftpb"

	"troupe/persistence/clocktest"
)

// TestAStreamWhoseOtherEndIsGoneIsOpenedAgain: nobody tells the one that writes (persistence/PROMISES.md, "F21").
func TestAStreamWhoseOtherEndIsGoneIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wires{}
		a, b := w.join("A"), w.join("B")
		defer a.Close()
		defer b.Close()
		a.say(1)
		assert.Equal(t, []uint64{1}, b.heard(), "what was sent is not there")
		w.cut.Store(true)
		a.say(2)
		assert.Empty(t, b.heard(), "it came through a cut wire")
		assert.Zero(t, a.lost.Load(), "the write has told it: this test shows nothing")
		w.cut.Store(false) // NB: the stream that was cut stays as it is; what is opened from now on works
		clocktest.Advance(10 * ping)
		a.say(3)
		assert.NotZero(t, a.lost.Load(), "nobody was told that something may be lost")
		assert.Equal(t, []uint64{3}, b.heard(), "the stream was not opened again")
	})
}

// TestANodeSaysWhichRunItIs: one that begins again remembers nothing (persistence/PROMISES.md, "F20").
func TestANodeSaysWhichRunItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wires{}
		a, b := w.join("A"), w.join("B")
		defer b.Close()
		a.say(1)
		a.Close()
		again := w.join("A")
		defer again.Close()
		again.say(1)
		assert.Equal(t, []uint64{1, 3}, b.runs, "the runs of A that B has met")
	})
}

// TestANodeThatIsUnwellIsNotAlive: it answers, and says so.
func TestANodeThatIsUnwellIsNotAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wires{}
		a, b := w.join("A"), w.join("B")
		defer a.Close()
		defer b.Close()
		a.say(1)
		clocktest.Advance(2 * ping)
		a.unwell.Store(true)
		synctest.Wait()
		before := b.alive.Load()
		clocktest.Advance(20 * ping)
		synctest.Wait()
		assert.NotZero(t, before, "a node that is well is not alive")
		assert.Equal(t, before, b.alive.Load(), "a node that is unwell is alive")
		assert.NotZero(t, b.ill.Load(), "it does not say so")
		assert.Zero(t, a.lost.Load(), "its stream ended")
	})
}

const ping = 50 * time.Millisecond

// wires joins nodes. What is written while they are cut is lost, also later, without an error.
type wires struct {
	nodes map[string]*node
	runs  uint64
	cut   atomic.Bool
}

// node is a mesh and what it has heard.
type node struct {
	*Mesh
	w        *wires
	incoming chan net.Conn
	closed   chan struct{}
	unwell   atomic.Bool

	mu       sync.Mutex
	messages []uint64
	runs     []uint64
	alive    atomic.Int32
	ill      atomic.Int32
	lost     atomic.Int32
}

func (w *wires) join(name string) *node {
	n := &node{w: w, incoming: make(chan net.Conn, 10), closed: make(chan struct{})}
	if w.nodes == nil {
		w.nodes = map[string]*node{}
	}
	w.nodes[name] = n
	w.runs++
	n.Mesh = New(Options{
		Node: name, Run: w.runs, Streams: streams{n}, Ping: ping, Healthy: func() bool { return !n.unwell.Load() },
		Met: n.met, Lost: func(string) { n.lost.Add(1) }, Log: zerolog.Nop(),
	})
	return n
}

// say sends a message to B, and waits until it is there if it comes at all.
func (n *node) say(index uint64) {
	n.Send("B", 1, &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Term: new(uint64(1)), Index: new(index)})
	n.Flush()
	synctest.Wait()
}

// heard returns the messages since the last call.
func (n *node) heard() []uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.messages
	n.messages = nil
	return all
}

func (n *node) met(_ string, run uint64) Inbound {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs = append(n.runs, run)
	return n
}

func (n *node) Alive()  { n.alive.Add(1) }
func (n *node) Unwell() { n.ill.Add(1) }

func (n *node) Receive(_ uint16, m *raftpb.Message, _ int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.messages = append(n.messages, m.GetIndex())
}

// streams implements Streams.
type streams struct{ *node }

func (s streams) Accept() (net.Conn, error) {
	select {
	case c := <-s.incoming:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s streams) Dial(to string, _ time.Duration) (net.Conn, error) {
	other := s.w.nodes[to]
	if other == nil {
		return nil, errors.New("nobody is there")
	}
	here, there := net.Pipe()
	other.incoming <- there
	return &wire{Conn: here, of: s.w}, nil
}

func (s streams) Close() error {
	close(s.closed)
	return nil
}

// wire is one end of a stream.
type wire struct {
	net.Conn
	of   *wires
	dead bool
}

func (w *wire) Write(b []byte) (int, error) {
	if w.dead = w.dead || w.of.cut.Load(); w.dead {
		return len(b), nil
	}
	return w.Conn.Write(b)
}
