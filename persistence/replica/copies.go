package replica

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"golang.org/x/time/rate"

	"troupe/persistence/replica/internal/mesh"
)

// A copy of a shard goes in a stream of its own: the id of the node that sends it, behind its length (2 bytes); the shard
// (2) and Raft's term of the message (8). When it is its turn the other node sends a byte. The rows follow in the order of
// their keys, each as the lengths of key and value (4 bytes each), key and value. A row without a key ends them. Position
// and members are rows. When the other node has all of it, it sends a byte again.
const (
	// copyRate is how many bytes of copies a node takes per second, so that what it does for others goes on. It takes one
	// copy at a time. CockroachDB's kv.snapshot_rebalance.max_rate has the same default.
	copyRate  = 32 << 20
	copyBurst = 64 << 10
	// copyEach is how long a copy takes at least until the next one is taken: each is synced several times, and what is
	// written beside waits for that, so that many small ones would stop it.
	copyEach     = 100 * time.Millisecond
	rowHeadBytes = 4 + 4
	// rowBytesMax bounds a row that another node sends, which no row of a shard reaches.
	rowBytesMax = 1 << 30
)

// sendCopy sends the rows of the shard as they are when it is this copy's turn. They may be newer than the message says.
func (g *Group) sendCopy(m *raftpb.Message) {
	h, to, term := g.host, m.GetTo(), m.GetTerm()
	h.done.Go(func() {
		status := raft.SnapshotFinish
		if err := g.copyTo(to, term); err != nil {
			g.o.Log.Warn().Err(err).Str("node", h.name(to)).Msg("could not send a copy of the shard")
			status = raft.SnapshotFailure
			g.noteCopy(to, 0)
		}
		g.do(func() { g.raft.ReportSnapshot(to, status) })
	})
}

func (g *Group) copyTo(to, term uint64) (err error) {
	h := g.host
	conn, err := h.o.Copies.Dial(h.name(to), 2*h.o.Tick)
	if err != nil {
		return err
	}
	if !h.conns.Hold(conn) {
		return net.ErrClosed
	}
	defer h.conns.Drop(conn)
	head := binary.BigEndian.AppendUint16(mesh.AppendNode(nil, h.o.Node), g.o.Shard)
	if _, err := conn.Write(binary.BigEndian.AppendUint64(head, term)); err != nil {
		return err
	}
	if err := h.awaitByte(conn, to); err != nil {
		return err
	}
	g.noteCopy(to, g.Applied())
	rows := g.o.Store.Snapshot()
	defer func() { err = errors.Join(err, rows.Close()) }()
	w := bufio.NewWriterSize(conn, copyBurst)
	row := func(key, value []byte) error {
		head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(len(key))), uint32(len(value)))
		_ = conn.SetWriteDeadline(time.Now().Add(10 * h.o.Tick))
		_, _ = w.Write(head)
		_, _ = w.Write(key)
		_, err := w.Write(value)
		return err
	}
	people, err := rows.Load(g.state.people)
	if err != nil {
		return err
	}
	of, err := decodeMembers(people)
	if err != nil {
		return err
	}
	if err := rows.Scan(of.last(g.o.Shard), row); err != nil {
		return err
	}
	if err := row(nil, nil); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return h.awaitByte(conn, to)
}

// noteCopy notes what the copy has that a node gets, 0 when it gets none.
func (g *Group) noteCopy(to, index uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.copied[to] = index; index == 0 {
		delete(g.mu.copied, to)
	}
}

// keptFactor is how many times as long as otherwise a log may become while a member gets a copy.
const keptFactor = 16

// needed is the entry up to which the log may be dropped. A member that gets a copy needs all entries that the copy does
// not have, or it would need another copy after this one. Only who leads sends entries, and a log that is much too long
// is dropped nevertheless.
func (g *Group) needed() (index uint64) {
	index = math.MaxUint64
	if g.leading == 0 || g.log.size() > keptFactor*g.o.LogBytesMax {
		return index
	}
	has := map[uint64]uint64{}
	g.raft.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) { has[id] = p.Match })
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, copied := range g.mu.copied {
		if match, member := has[id]; !member || match >= copied {
			delete(g.mu.copied, id)
			continue
		}
		index = min(index, copied)
	}
	return index
}

// awaitByte waits for a byte of another node, as long as that is alive.
func (h *Host) awaitByte(conn net.Conn, from uint64) error {
	for {
		_ = conn.SetReadDeadline(time.Now().Add(h.o.Tick))
		_, err := io.ReadFull(conn, make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || !h.alive(from) {
			return err
		}
	}
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
	rows, m, err := g.gatherCopy(conn, r)
	if err != nil {
		g.copying.Store(false)
		return err
	}
	m.From, m.To, m.Term = new(raftID(node)), new(h.self), new(binary.BigEndian.Uint64(head[2:]))
	if !g.giveCopy(rows, m) {
		return net.ErrClosed
	}
	_, err = conn.Write([]byte{1})
	return err
}

// gatherCopy reads a copy when it is its turn.
func (g *Group) gatherCopy(conn net.Conn, r io.Reader) (rows Replacement, m *raftpb.Message, err error) {
	h := g.host
	select {
	case h.receiving <- struct{}{}: // NB: a channel, since time passes while it is held (persistence/PROMISES.md, "F23")
		begun := time.Now()
		defer func() { time.AfterFunc(copyEach-time.Since(begun), func() { <-h.receiving }) }()
	case <-g.stop:
		return nil, nil, net.ErrClosed
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		return nil, nil, err
	}
	if rows, err = g.o.Store.Replace(); err != nil {
		return nil, nil, err
	}
	m, err = g.readRows(paced{r, h.pace}, rows, func() { _ = conn.SetReadDeadline(time.Now().Add(10 * h.o.Tick)) })
	if err != nil {
		rows.Abort()
	}
	return rows, m, err
}

// giveCopy tells Raft of a copy, which decides whether to put it in place. It is false when the group was stopped before.
func (g *Group) giveCopy(rows Replacement, m *raftpb.Message) (taken bool) {
	var once sync.Once // NB: a group that has ended calls nothing any more
	done := make(chan struct{})
	g.do(func() {
		once.Do(func() {
			g.incoming, taken = rows, true
			_ = g.raft.Step(m)
		})
		close(done)
	})
	select {
	case <-done:
	case <-g.stop:
		once.Do(rows.Abort)
	}
	return taken
}

// paced reads no faster than the node takes copies.
type paced struct {
	r    io.Reader
	pace *rate.Limiter
}

func (p paced) Read(b []byte) (int, error) {
	n, err := p.r.Read(b[:min(len(b), copyBurst)])
	return n, errors.Join(err, p.pace.WaitN(context.Background(), n))
}

// readRows gathers the rows of a copy, and returns the message about it.
func (g *Group) readRows(r io.Reader, rows Replacement, alive func()) (*raftpb.Message, error) {
	var at position
	var of members
	var head [rowHeadBytes]byte
	var buf []byte
	for {
		select {
		case <-g.stop: // nobody wants it any more, and another shard's may wait for its turn
			return nil, net.ErrClosed
		default:
		}
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
			if of, err = decodeMembers(value); err == nil {
				err = rows.Reach(of.last(g.o.Shard))
			}
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

// install returns what puts a copy in the place of the shard's rows. The group waits meanwhile, and the others go on.
func (g *Group) install(m *raftpb.Message) func() {
	rows := g.incoming
	g.incoming = nil
	g.installing = true
	return func() {
		if err := g.putInPlace(m, rows); err != nil {
			select {
			case <-g.stop:
			default:
				g.o.Fatal(fmt.Sprintf("put a copy of shard %d in place: %v", g.o.Shard, err))
			}
			g.end()
			return
		}
		g.copying.Store(false)
		g.state.installed.Add(1)
		if g.o.Follower != nil {
			g.o.Follower.Replaced(max(g.Last(), g.state.members.last(g.o.Shard)))
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
	}
}

// putInPlace is durable when it returns. NB: what was written before has its turn first, so that nothing old comes over
// the copy.
func (g *Group) putInPlace(m *raftpb.Message, rows Replacement) error {
	err := g.o.Store.Write(Vital, func(b Batch) {
		g.log.append(b, &raftpb.Message{Term: m.Term, Vote: m.Vote})
		b.Set(g.log.rowKey('c'), nil)
	})
	if err != nil {
		rows.Abort()
		return err
	}
	if err := rows.Commit(); err != nil {
		return err
	}
	if err := g.state.load(); err != nil {
		return err
	}
	return g.o.Store.Write(Vital, func(b Batch) { g.log.restart(b, raftEntry{g.state.at.applied, g.state.at.term}) })
}

// end has Stop return for a group whose store was closed while a copy was put in place.
func (g *Group) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.ended != nil {
		close(g.mu.ended)
		g.mu.ended = nil
	}
}
