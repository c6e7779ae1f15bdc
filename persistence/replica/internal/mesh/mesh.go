// Package mesh is the streams in which nodes tell each other what their groups have to say, and that they are alive: one
// stream for each pair of nodes and direction. It knows no group.
//
//	          Send                             Inbound.Receive
//	groups ────────► bytes for a node ──► stream ──► groups
//	                        ▲               │
//	          every Ping: alive, unwell     └──► one byte for each: the stream is there
package mesh

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3/raftpb"
)

// A stream begins with the id of the node that opened it, behind its length (2 bytes), and the number of its run (8). Each
// message is behind its length (4 bytes): see appendMessage. The lengths alive and unwell say how the node is; the other
// end answers each with a byte.
const (
	alive, unwell = 0, 1<<32 - 1

	// waitingMax is how many bytes may wait to be sent to a node. Raft sends again what is dropped.
	waitingMax = 32 << 20
	// messageMax bounds what is read, in bytes.
	messageMax = 64 << 20
)

// Options of a mesh.
type Options struct {
	Node    string // this one
	Run     uint64 // of this process: it differs from the one before
	Streams Streams
	// Ping is the time between two messages that this node is alive. A stream whose other end has not answered five of
	// them is opened again.
	Ping time.Duration
	// Healthy reports whether this node can take part: it says unwell when not.
	Healthy func() bool
	// Met returns what takes the messages of a node that has opened a stream, in one of its runs.
	Met func(node string, run uint64) Inbound
	// Lost is called when something that was sent to a node may be lost.
	Lost func(node string)
	Log  zerolog.Logger
}

// Streams carries bytes between nodes.
type Streams interface {
	// Accept returns the next stream that another node has opened, or an error once the streams are closed.
	Accept() (net.Conn, error)
	// Dial opens a stream to a node.
	Dial(node string, timeout time.Duration) (net.Conn, error)
	// Close ends Accept.
	Close() error
}

// Inbound takes what a node says.
type Inbound interface {
	// Alive is called when it says that it is alive and well, Unwell when it is not well.
	Alive()
	Unwell()
	// Receive takes a message, without its From and To, which was of so many bytes.
	Receive(shard uint16, m *raftpb.Message, bytes int)
}

// Mesh is the streams of a node. All methods are safe for concurrent use.
type Mesh struct {
	o     Options
	conns Conns
	stop  chan struct{}
	done  sync.WaitGroup
	mu    struct {
		sync.Mutex
		links  map[string]*link
		closed bool
	}
}

// link is the stream to one node.
type link struct {
	node  string
	wake  chan struct{}
	gone  chan struct{} // closed when nobody needs the stream any more
	mu    sync.Mutex
	waits []byte // messages that were not sent yet
	free  []byte // room for them
}

// New returns a mesh without streams to others; it accepts theirs. Close ends it.
func New(o Options) *Mesh {
	m := &Mesh{o: o, stop: make(chan struct{})}
	m.mu.links = map[string]*link{}
	m.done.Go(m.accept)
	return m
}

// Close ends all streams, and returns when nothing is called any more.
func (m *Mesh) Close() {
	m.mu.Lock()
	m.mu.closed = true
	m.mu.Unlock()
	close(m.stop)
	_ = m.o.Streams.Close()
	m.conns.Close()
	m.done.Wait()
}

// Send adds a message to those that wait for the stream to a node; [Mesh.Flush] has them sent. It never waits.
func (m *Mesh) Send(node string, shard uint16, msg *raftpb.Message) {
	l := m.link(node)
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waits) < waitingMax {
		l.waits = appendMessage(l.waits, shard, msg)
	}
}

// Open has a stream to a node opened, in which this one says that it is alive.
func (m *Mesh) Open(node string) { m.link(node) }

// link returns the stream to a node, which is opened when there is none.
func (m *Mesh) link(node string) *link {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.mu.links[node]
	if l == nil && !m.mu.closed && node != m.o.Node {
		l = &link{node: node, wake: make(chan struct{}, 1), gone: make(chan struct{})}
		m.mu.links[node] = l
		m.done.Go(func() { m.run(l) })
	}
	return l
}

// Keep ends the streams to all nodes but those that are needed.
func (m *Mesh) Keep(needed func(node string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for node, l := range m.mu.links {
		if !needed(node) {
			close(l.gone)
			delete(m.mu.links, node)
		}
	}
}

// Flush has everything sent that was added.
func (m *Mesh) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.mu.links {
		l.mu.Lock()
		waits := len(l.waits) > 0
		l.mu.Unlock()
		if waits {
			Signal(l.wake)
		}
	}
}

// Signal has anyone who waits for wake go on; wake has room for one entry.
func Signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// run keeps the stream to a node open, sends what waits, and asks all the time whether the other end is there.
func (m *Mesh) run(l *link) {
	var s *stream
	pings := time.NewTicker(m.o.Ping)
	defer pings.Stop()
	end := func() {
		if s != nil {
			m.conns.Drop(s)
			s = nil
		}
	}
	defer end()
	silent := false // it was at the last ping: a look that comes late finds answers that nobody has read yet
	for {
		ping := false
		select {
		case <-l.wake:
		case <-pings.C:
			ping = true
		case <-l.gone:
			return
		case <-m.stop:
			return
		}
		bytes := l.take()
		switch {
		case ping && m.o.Healthy():
			bytes = binary.BigEndian.AppendUint32(bytes, alive)
		case ping:
			bytes = binary.BigEndian.AppendUint32(bytes, unwell)
		}
		var err error
		if s == nil && len(bytes) > 0 {
			s, err = m.open(l.node)
		}
		if err == nil && len(bytes) > 0 {
			err = s.write(bytes)
		}
		l.give(bytes)
		if late := ping && s != nil && s.silent(); err == nil && !(late && silent) {
			silent = ping && late || !ping && silent
			continue
		}
		silent = false
		end()
		m.o.Lost(l.node)
		select {
		case <-time.After(m.o.Ping):
		case <-m.stop:
			return
		}
	}
}

// take returns what waits, with room for more.
func (l *link) take() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	bytes := l.waits
	l.waits, l.free = l.free[:0], nil
	return bytes
}

// give returns the room of what was sent.
func (l *link) give(bytes []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = bytes
}

// stream is one that this node has opened.
type stream struct {
	net.Conn
	ping     time.Duration
	answered atomic.Int64 // when the other end did so last, in Unix nanoseconds
}

func (m *Mesh) open(node string) (*stream, error) {
	conn, err := m.o.Streams.Dial(node, 10*m.o.Ping)
	if err != nil {
		return nil, err
	}
	s := &stream{Conn: conn, ping: m.o.Ping}
	s.answered.Store(time.Now().UnixNano())
	if !m.conns.Hold(s) {
		return nil, net.ErrClosed
	}
	m.done.Go(s.listen)
	return s, s.write(binary.BigEndian.AppendUint64(AppendNode(nil, m.o.Node), m.o.Run))
}

func (s *stream) write(bytes []byte) error {
	_ = s.SetWriteDeadline(time.Now().Add(10 * s.ping))
	_, err := s.Write(bytes)
	return err
}

// silent reports whether the other end has not answered for some time: what is written into a stream whose other end
// is gone is lost without an error.
func (s *stream) silent() bool {
	return time.Since(time.Unix(0, s.answered.Load())) > 5*s.ping
}

func (s *stream) listen() {
	var answers [64]byte
	for {
		if _, err := s.Read(answers[:]); err != nil {
			return
		}
		s.answered.Store(time.Now().UnixNano())
	}
}

// accept reads what other nodes send.
func (m *Mesh) accept() {
	for {
		conn, err := m.o.Streams.Accept()
		if err != nil {
			return
		}
		if m.conns.Hold(conn) {
			m.done.Go(func() {
				defer m.conns.Drop(conn)
				m.o.Log.Debug().Err(m.read(conn)).Msg("a stream of another node ended")
			})
		}
	}
}

// read reads a stream until it ends.
func (m *Mesh) read(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, 64<<10)
	node, err := ReadNode(r)
	if err != nil {
		return err
	}
	var run [8]byte
	if _, err := io.ReadFull(r, run[:]); err != nil {
		return err
	}
	in := m.o.Met(node, binary.BigEndian.Uint64(run[:]))
	var head [4]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		switch size := binary.BigEndian.Uint32(head[:]); {
		case size == alive || size == unwell:
			if size == alive {
				in.Alive()
			} else {
				in.Unwell()
			}
			if _, err := conn.Write([]byte{1}); err != nil {
				return err
			}
		case size > messageMax:
			return fmt.Errorf("a message of %d bytes", size)
		default:
			bytes := make([]byte, size)
			if _, err := io.ReadFull(r, bytes); err != nil {
				return err
			}
			shard, msg, err := decodeMessage(bytes)
			if err != nil {
				return err
			}
			in.Receive(shard, msg, len(bytes))
		}
	}
}

// AppendNode appends the id of a node, behind its length (2 bytes).
func AppendNode(dst []byte, node string) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(node))), node...)
}

// ReadNode reads what AppendNode has written.
func ReadNode(r io.Reader) (string, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return "", err
	}
	node := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, node)
	return string(node), err
}

// Conns is the open streams of a part of the program, which ends them together. Its zero value has none.
type Conns struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// Hold notes a stream. It is false, and the stream closed, when all were ended.
func (c *Conns) Hold(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close()
		return false
	}
	if c.open == nil {
		c.open = map[net.Conn]struct{}{}
	}
	c.open[conn] = struct{}{}
	return true
}

// Drop closes a stream.
func (c *Conns) Drop(conn net.Conn) {
	_ = conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// Close ends all streams, and those to come.
func (c *Conns) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for conn := range c.open {
		_ = conn.Close()
	}
}
