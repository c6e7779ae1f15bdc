// Package replicatest joins stores with replicas in memory, over links that can be cut, and
// on disks that lie. Only tests import it.
package replicatest

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.etcd.io/raft/v3/raftpb"

	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Network joins nodes in memory. Links can be cut in one direction: what is sent over
// them is lost, and the stream that it was lost from stays dead.
type Network struct {
	mu        sync.Mutex
	listeners map[place]*listener
	cut       map[link]bool
	lost      atomic.Int32 // the type of the messages that are lost everywhere, -1 of none
}

type place struct {
	node  string
	shard key.Shard
}

type link struct{ from, to string }

// NewNetwork returns a network without nodes.
func NewNetwork() *Network {
	n := &Network{listeners: map[place]*listener{}, cut: map[link]bool{}}
	n.lost.Store(-1)
	return n
}

// Lose has messages of a type lost from now on, and nothing else.
func (n *Network) Lose(kind raftpb.MessageType) { n.lost.Store(int32(kind)) }

// Set cuts or heals what goes from one node to another.
func (n *Network) Set(from, to string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[link{from, to}] = cut
}

// Isolate cuts or heals all links of a node.
func (n *Network) Isolate(node string, others []string, cut bool) {
	for _, other := range others {
		if other != node {
			n.Set(node, other, cut)
			n.Set(other, node, cut)
		}
	}
}

// Cut says whether what goes from one node to another is lost.
func (n *Network) Cut(from, to string) bool { return n.isCut(link{from, to}) }

func (n *Network) isCut(l link) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[l]
}

// Streams returns the streams of a node.
func (n *Network) Streams(node string) func(key.Shard) replica.Streams {
	return func(sh key.Shard) replica.Streams {
		n.mu.Lock()
		defer n.mu.Unlock()
		l := &listener{of: n, at: place{node, sh}, streams: make(chan net.Conn, 16), closed: make(chan struct{})}
		n.listeners[l.at] = l
		return l
	}
}

type listener struct {
	of      *Network
	at      place
	streams chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.streams:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Dial(node string, timeout time.Duration) (net.Conn, error) {
	there := link{l.at.node, node}
	l.of.mu.Lock()
	to := l.of.listeners[place{node, l.at.shard}]
	cut := l.of.cut[there] || l.of.cut[link{node, l.at.node}]
	l.of.mu.Unlock()
	if cut {
		<-time.After(timeout)
	}
	if to == nil || cut {
		return nil, errors.New("nobody is there")
	}
	mine, theirs := net.Pipe()
	select {
	case to.streams <- &lossy{Conn: theirs, of: l.of, link: link{node, l.at.node}}:
		return &lossy{Conn: mine, of: l.of, link: there}, nil
	case <-to.closed:
		return nil, errors.New("nobody is there any more")
	}
}

// lossy is one end of a stream.
type lossy struct {
	net.Conn
	of   *Network
	link link // that this end sends over
	mu   sync.Mutex
	dead bool
}

func (c *lossy) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.dead = c.dead || c.of.isCut(c.link)
	dead := c.dead
	c.mu.Unlock()
	if dead {
		return len(p), nil
	}
	if kind := c.of.lost.Load(); kind >= 0 {
		_, err := c.Conn.Write(without(p, byte(kind)))
		return len(p), err
	}
	return c.Conn.Write(p)
}

// without returns what is written into a stream but for messages of a type: see the package mesh.
func without(p []byte, kind byte) (kept []byte) {
	for rest := p; len(rest) > 0; {
		size := 4
		if len(rest) < size {
			return p // as here
		}
		if n := binary.BigEndian.Uint32(rest); n != 0 && n != 1<<32-1 {
			size += int(n)
		}
		if size > len(rest) {
			return p // these are no messages
		}
		if size < 7 || rest[6] != kind {
			kept = append(kept, rest[:size]...)
		}
		rest = rest[size:]
	}
	return kept
}

// LyingFS says that everything is synced, and syncs nothing while Lies is true.
type LyingFS struct {
	vfs.FS
	Lies *atomic.Bool
}

// Create implements vfs.FS.
func (l LyingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return l.lying(l.FS.Create(name, category))
}

// ReuseForWrite implements vfs.FS.
func (l LyingFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return l.lying(l.FS.ReuseForWrite(oldname, newname, category))
}

func (l LyingFS) lying(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return lyingFile{f, l.Lies}, nil
}

type lyingFile struct {
	vfs.File
	lies *atomic.Bool
}

func (f lyingFile) Sync() error {
	if f.lies.Load() {
		return nil
	}
	return f.File.Sync()
}

func (f lyingFile) SyncData() error {
	if f.lies.Load() {
		return nil
	}
	return f.File.SyncData()
}

func (f lyingFile) SyncTo(length int64) (full bool, err error) {
	if f.lies.Load() {
		return true, nil
	}
	return f.File.SyncTo(length)
}
