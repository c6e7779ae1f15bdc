package replica

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"troupe/persistence/replica/internal/mesh"
)

// A copy of a shard goes in a stream of its own: the id of the node that sends it, behind its length (2 bytes); the shard
// (2), Raft's term of the message (8), and the rows in the order of their keys, each as the lengths of key and value
// (4 bytes each), key and value. A row without a key ends it. Position and members are rows.
const (
	rowHeadBytes = 4 + 4
	// rowBytesMax bounds a row that another node sends, which no row of a shard reaches.
	rowBytesMax = 1 << 30
)

// sendCopy sends the rows of the shard as they are now, whatever the message says that they are.
func (g *Group) sendCopy(m *raftpb.Message) {
	h, to, term := g.host, m.GetTo(), m.GetTerm()
	node := h.name(to)
	h.done.Go(func() {
		sending := h.copies(node)
		select {
		case sending <- struct{}{}:
			defer func() { <-sending }()
		case <-h.stop:
			return
		}
		err := g.copyTo(node, term)
		if err != nil {
			g.o.Log.Warn().Err(err).Str("node", node).Msg("could not send a copy of the shard")
		}
		status := raft.SnapshotFinish
		if err != nil {
			status = raft.SnapshotFailure
		}
		g.do(func() { g.raft.ReportSnapshot(to, status) })
	})
}

// copies has an entry while a shard is copied to a node. NB: a channel, since time passes while it is held
// (persistence/PROMISES.md, "F23").
func (h *Host) copies(node string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.copies[node] == nil {
		h.mu.copies[node] = make(chan struct{}, 1)
	}
	return h.mu.copies[node]
}

func (g *Group) copyTo(node string, term uint64) (err error) {
	rows := g.o.Store.Snapshot()
	defer func() { err = errors.Join(err, rows.Close()) }()
	conn, err := g.host.o.Copies.Dial(node, 2*g.host.o.Tick)
	if err != nil {
		return err
	}
	if !g.host.conns.Hold(conn) {
		return net.ErrClosed
	}
	defer g.host.conns.Drop(conn)
	w := bufio.NewWriterSize(conn, 64<<10)
	head := mesh.AppendNode(nil, g.host.o.Node)
	head = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint16(head, g.o.Shard), term)
	_, _ = w.Write(head)
	row := func(key, value []byte) error {
		head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(len(key))), uint32(len(value)))
		_ = conn.SetWriteDeadline(time.Now().Add(10 * g.host.o.Tick))
		_, _ = w.Write(head)
		_, _ = w.Write(key)
		_, err := w.Write(value)
		return err
	}
	if err := rows.Scan(row); err != nil {
		return err
	}
	if err := row(nil, nil); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * g.host.o.Tick))
	_, err = io.ReadFull(conn, make([]byte, 1)) // it has all of it
	return err
}

// acceptCopies takes copies of shards that other nodes send.
func (h *Host) acceptCopies() {
	for {
		conn, err := h.o.Copies.Accept()
		if err != nil {
			return
		}
		if !h.conns.Hold(conn) {
			continue
		}
		h.done.Go(func() {
			defer h.conns.Drop(conn)
			if err := h.readCopy(conn); err != nil {
				h.o.Log.Warn().Err(err).Msg("could not take a copy of a shard")
			}
		})
	}
}

func (h *Host) readCopy(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, 64<<10)
	node, err := mesh.ReadNode(r)
	if err != nil {
		return err
	}
	h.know(node)
	var head [10]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	g := h.group(binary.BigEndian.Uint16(head[:]))
	if g == nil {
		return errors.New("nobody here has the shard")
	}
	if err := h.o.Store.Refusal(); err != nil {
		return err
	}
	if !g.copying.CompareAndSwap(false, true) {
		return errors.New("another copy is on its way")
	}
	rows, err := g.o.Store.Replace()
	if err != nil {
		g.copying.Store(false)
		return err
	}
	m, err := g.readRows(r, rows, func() { _ = conn.SetReadDeadline(time.Now().Add(10 * h.o.Tick)) })
	if err != nil {
		rows.Abort()
		g.copying.Store(false)
		return err
	}
	m.From, m.To, m.Term = new(raftID(node)), new(h.self), new(binary.BigEndian.Uint64(head[2:]))
	g.do(func() {
		g.incoming = rows
		_ = g.raft.Step(m)
	})
	_, err = conn.Write([]byte{1})
	return err
}

// readRows gathers the rows of a copy, and returns the message about it.
func (g *Group) readRows(r io.Reader, rows Replacement, alive func()) (*raftpb.Message, error) {
	var at position
	var of members
	var head [rowHeadBytes]byte
	var buf []byte
	for {
		alive()
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, err
		}
		keyLen, valueLen := int(binary.BigEndian.Uint32(head[:])), int(binary.BigEndian.Uint32(head[4:]))
		if keyLen == 0 {
			break
		}
		if keyLen+valueLen > rowBytesMax {
			return nil, fmt.Errorf("a row of %d bytes in a copy", keyLen+valueLen)
		}
		if cap(buf) < keyLen+valueLen {
			buf = make([]byte, keyLen+valueLen)
		}
		buf = buf[:keyLen+valueLen]
		if _, err := io.ReadFull(r, buf); err != nil {
			return nil, err
		}
		key, value := buf[:keyLen], buf[keyLen:]
		var err error
		switch {
		case bytes.Equal(key, g.state.key):
			at, err = decodePosition(value)
		case bytes.Equal(key, g.state.people):
			err = json.Unmarshal(value, &of)
		}
		if err == nil {
			err = rows.Set(key, value)
		}
		if err != nil {
			return nil, err
		}
	}
	if at.applied == 0 || len(of.Voters) == 0 {
		return nil, errors.New("a copy without a position")
	}
	g.host.know(of.all()...)
	return &raftpb.Message{Type: raftpb.MsgSnap.Enum(), Snapshot: snapshotOf(at, of)}, nil
}

// install puts a copy in the place of the shard's rows. The group waits meanwhile, and the others go on.
func (g *Group) install(m *raftpb.Message) {
	rows := g.incoming
	g.incoming = nil
	g.installing = true
	g.host.done.Go(func() {
		// NB: what was written before has its turn first, so that nothing old comes over the copy.
		err := g.o.Store.Write(Vital, func(b Batch) {
			g.log.append(b, &raftpb.Message{Term: m.Term, Vote: m.Vote})
			b.Set(g.log.rowKey('c'), nil)
		})
		if err == nil {
			err = rows.Commit()
		}
		if err == nil {
			err = g.state.load()
		}
		if err == nil {
			err = g.o.Store.Write(Vital, func(b Batch) { g.log.restart(b, raftEntry{g.state.at.applied, g.state.at.term}) })
		}
		if err != nil {
			select {
			case <-g.stop:
			default:
				g.o.Fatal(fmt.Sprintf("put a copy of shard %d in place: %v", g.o.Shard, err))
			}
			return
		}
		g.copying.Store(false)
		g.state.installed.Add(1)
		if g.o.Follower != nil {
			g.o.Follower.Replaced()
		}
		g.state.publish(g.state.at, g.state.members)
		g.notePeers()
		g.mu.Lock()
		g.installing = false
		g.mu.Unlock()
		for _, answer := range m.GetResponses() {
			g.deliver(answer)
		}
		g.host.mesh.Flush()
		g.do(func() {})
	})
}
