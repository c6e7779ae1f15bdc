package replica

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// A stream of messages begins with the id of the node that opened it, behind its length (2 bytes), and the number of its
// run (8). Each message is behind its length (4 bytes): see appendMessage. The lengths alive and unwell say how the node is.
const (
	// peerBytesMax is what may wait to be sent to a node. Raft sends again what is dropped.
	peerBytesMax = 32 << 20
	// messageMax bounds what is read.
	messageMax = 64 << 20

	alive, unwell = 0, 1<<32 - 1
)

// mesh is the streams between the nodes.
type mesh struct {
	host *Host
	mu   struct {
		sync.Mutex
		peers  map[string]*link
		conns  map[net.Conn]struct{}
		closed bool
	}
}

// link is the stream to one node.
type link struct {
	node   string
	wake   chan struct{}
	gone   chan struct{} // closed when nobody needs the stream any more
	copies chan struct{} // has an entry while a shard is copied to the node
	mu     sync.Mutex
	buf    []byte // encoded messages that were not sent yet
	free   []byte
}

func newMesh(h *Host) *mesh {
	m := &mesh{host: h}
	m.mu.peers, m.mu.conns = map[string]*link{}, map[net.Conn]struct{}{}
	return m
}

func (m *mesh) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.closed = true
	for c := range m.mu.conns {
		_ = c.Close()
	}
}

// hold notes a stream, so that close ends it. It is false when the mesh is closed.
func (m *mesh) hold(c net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		_ = c.Close()
		return false
	}
	m.mu.conns[c] = struct{}{}
	return true
}

func (m *mesh) drop(c net.Conn) {
	_ = c.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.mu.conns, c)
}

// enqueue adds a message to those that wait for the stream to its node.
func (m *mesh) enqueue(g *Group, msg *raftpb.Message) {
	node := m.host.name(msg.GetTo())
	if node == "" {
		return
	}
	l := m.link(node)
	if l == nil {
		return
	}
	l.mu.Lock()
	if len(l.buf) < peerBytesMax {
		l.buf = appendMessage(l.buf, g.o.Shard, msg)
	}
	l.mu.Unlock()
}

// link returns the stream to a node, which is opened when there is none.
func (m *mesh) link(node string) *link {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.mu.peers[node]
	if l == nil && !m.mu.closed && node != m.host.o.Node {
		l = &link{node: node, wake: make(chan struct{}, 1), gone: make(chan struct{}), copies: make(chan struct{}, 1)}
		m.mu.peers[node] = l
		m.host.done.Go(func() { m.send(l) })
	}
	return l
}

// keep ends the streams to nodes that are members of no group here, and that are silent.
func (m *mesh) keep(members map[uint64]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for node, l := range m.mu.peers {
		if id := raftID(node); !members[id] && !m.host.heardWithin(id, 10*m.host.o.Tick) {
			close(l.gone)
			delete(m.mu.peers, node)
		}
	}
}

// flush has everything sent that was added.
func (m *mesh) flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.mu.peers {
		l.mu.Lock()
		waits := len(l.buf) > 0
		l.mu.Unlock()
		if waits {
			signal(l.wake)
		}
	}
}

// send keeps a stream to a node open, sends what waits, and asks all the time whether the other end is there: what is
// written into a stream whose other end is gone is lost without an error.
func (m *mesh) send(l *link) {
	var conn *stream
	pings := time.NewTicker(m.host.o.Tick / pingTicks)
	defer pings.Stop()
	defer func() {
		if conn != nil {
			m.drop(conn)
		}
	}()
	for {
		ping := false
		select {
		case <-l.wake:
		case <-pings.C:
			ping = true
		case <-l.gone:
			return
		case <-m.host.stop:
			return
		}
		l.mu.Lock()
		buf := l.buf
		l.buf, l.free = l.free[:0], nil
		l.mu.Unlock()
		switch {
		case ping && m.host.healthy():
			buf = binary.BigEndian.AppendUint32(buf, alive)
		case ping:
			buf = binary.BigEndian.AppendUint32(buf, unwell)
		}
		var err error
		if len(buf) > 0 {
			if conn == nil {
				conn, err = m.open(l.node)
			}
			if err == nil {
				_ = conn.SetWriteDeadline(time.Now().Add(m.host.o.Tick))
				_, err = conn.Write(buf)
			}
		}
		l.mu.Lock()
		l.free = buf
		l.mu.Unlock()
		if err == nil && (conn == nil || !conn.silent(m.host.o.Tick/2)) {
			continue
		}
		if conn != nil {
			m.drop(conn)
			conn = nil
		}
		m.unreachable(l.node)
		select {
		case <-time.After(m.host.o.Tick / pingTicks):
		case <-m.host.stop:
			return
		}
	}
}

// stream is one that this node has opened. Its other end answers each message of no length with a byte.
type stream struct {
	net.Conn
	answered atomic.Int64 // when it did so last
}

// silent reports whether the other end has not answered for some time.
func (s *stream) silent(within time.Duration) bool {
	return time.Since(time.Unix(0, s.answered.Load())) > within
}

func (s *stream) listen() {
	var b [64]byte
	for {
		if _, err := s.Read(b[:]); err != nil {
			return
		}
		s.answered.Store(time.Now().UnixNano())
	}
}

func (m *mesh) open(node string) (*stream, error) {
	inner, err := m.host.o.Messages.Dial(node, m.host.o.Tick)
	if err != nil {
		return nil, err
	}
	conn := &stream{Conn: inner}
	conn.answered.Store(time.Now().UnixNano())
	if !m.hold(conn) {
		return nil, net.ErrClosed
	}
	m.host.done.Go(conn.listen)
	self := m.host.o.Node
	hello := append(binary.BigEndian.AppendUint16(nil, uint16(len(self))), self...)
	_ = conn.SetWriteDeadline(time.Now().Add(m.host.o.Tick))
	_, err = conn.Write(binary.BigEndian.AppendUint64(hello, m.host.run))
	return conn, err
}

// unreachable tells all groups that what was sent to a node was lost.
func (m *mesh) unreachable(node string) {
	id := raftID(node)
	m.host.mu.Lock()
	defer m.host.mu.Unlock()
	for _, g := range m.host.mu.groups {
		go g.do(func() { g.raft.ReportUnreachable(id) })
	}
}

// accept reads what other nodes send.
func (m *mesh) accept() {
	for {
		conn, err := m.host.o.Messages.Accept()
		if err != nil {
			return
		}
		if m.hold(conn) {
			m.host.done.Go(func() {
				defer m.drop(conn)
				if err := m.read(conn); err != nil {
					m.host.o.Log.Debug().Err(err).Msg("a stream of another node ended")
				}
			})
		}
	}
}

func (m *mesh) read(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, 64<<10)
	node, err := readHello(r)
	if err != nil {
		return err
	}
	var run [8]byte
	if _, err := io.ReadFull(r, run[:]); err != nil {
		return err
	}
	m.host.meet(node, binary.BigEndian.Uint64(run[:]))
	from := raftID(node)
	var head [4]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		size := binary.BigEndian.Uint32(head[:])
		if size == alive || size == unwell {
			if size == alive {
				m.host.hear(from)
			}
			if _, err := conn.Write([]byte{1}); err != nil {
				return err
			}
			continue
		}
		if size > messageMax {
			return fmt.Errorf("a message of %d bytes", size)
		}
		buf := make([]byte, size)
		if _, err := io.ReadFull(r, buf); err != nil {
			return err
		}
		shard, msg, err := decodeMessage(buf)
		if err != nil {
			return err
		}
		msg.From, msg.To = new(from), new(m.host.self)
		if g := m.host.group(shard); g != nil {
			g.receive(msg, len(buf))
		}
	}
}

func readHello(r io.Reader) (string, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return "", err
	}
	node := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, node)
	return string(node), err
}

// receive takes a message of another node.
func (g *Group) receive(m *raftpb.Message, size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.stopped || g.mu.inboxBytes+size > inboxBytesMax && len(m.GetEntries()) > 0 {
		return
	}
	g.mu.inboxBytes += size
	g.mu.inbox = append(g.mu.inbox, m)
	g.host.schedule(g)
}

// appendMessage adds a message, behind its length: shard (2 bytes), type (1), reject (1), and as uvarints term, log term,
// index, commit, vote, reject hint, length of the context, the context, number of entries; each entry has its term, type
// and the length of its data, as uvarints, and the data. Their indexes follow that of the message.
func appendMessage(dst []byte, shard uint16, m *raftpb.Message) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(append(dst, 0, 0, 0, 0), shard)
	reject := byte(0)
	if m.GetReject() {
		reject = 1
	}
	dst = append(dst, byte(m.GetType()), reject)
	for _, n := range []uint64{m.GetTerm(), m.GetLogTerm(), m.GetIndex(), m.GetCommit(), m.GetVote(), m.GetRejectHint(), uint64(len(m.GetContext()))} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = append(dst, m.GetContext()...)
	dst = binary.AppendUvarint(dst, uint64(len(m.GetEntries())))
	for _, e := range m.GetEntries() {
		dst = binary.AppendUvarint(dst, e.GetTerm())
		dst = binary.AppendUvarint(dst, uint64(e.GetType()))
		dst = binary.AppendUvarint(dst, uint64(len(e.GetData())))
		dst = append(dst, e.GetData()...)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

var errMessage = errors.New("a message cannot be read")

// decodeMessage reads a message, whose data it keeps. What Raft would panic at is refused.
func decodeMessage(b []byte) (shard uint16, m *raftpb.Message, err error) {
	if len(b) < 4 {
		return 0, nil, errMessage
	}
	shard, kind, reject := binary.BigEndian.Uint16(b), raftpb.MessageType(b[2]), b[3] != 0
	d := decoder{b: b[4:]}
	m = &raftpb.Message{Type: kind.Enum(), Reject: new(reject)}
	m.Term, m.LogTerm, m.Index, m.Commit, m.Vote, m.RejectHint = new(d.number()), new(d.number()), new(d.number()), new(d.number()), new(d.number()), new(d.number())
	m.Context = d.bytes()
	count := d.number()
	if count > uint64(len(d.b)) {
		return 0, nil, errMessage
	}
	if count > 0 {
		m.Entries = make([]*raftpb.Entry, count)
	}
	term := m.GetLogTerm()
	for i := range m.Entries {
		e := &raftpb.Entry{Index: new(m.GetIndex() + 1 + uint64(i)), Term: new(d.number()), Type: raftpb.EntryType(d.number()).Enum(), Data: d.bytes()}
		if e.GetTerm() < term || e.GetTerm() > m.GetTerm() || e.GetType() > raftpb.EntryConfChangeV2 {
			return 0, nil, errMessage
		}
		term = e.GetTerm()
		m.Entries[i] = e
	}
	switch {
	case d.failed || len(d.b) > 0:
		return 0, nil, errMessage
	case raft.IsLocalMsg(kind), kind == raftpb.MsgProp, kind == raftpb.MsgSnap, kind > raftpb.MsgForgetLeader:
		return 0, nil, fmt.Errorf("%w: type %d", errMessage, kind)
	case m.GetTerm() == 0:
		return 0, nil, errMessage
	}
	return shard, m, nil
}

// decoder reads numbers and texts; failed says that something was missing.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.failed = true
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) bytes() []byte {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.failed = true
		return nil
	}
	if n == 0 {
		return nil
	}
	all := d.b[:n:n]
	d.b = d.b[n:]
	return all
}
