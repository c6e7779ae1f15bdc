// Package moment reads all rows of a cluster as they are at one moment, for a backup.
//
//	asked node ── hold ───► the leaders of all shards: no commit is begun, those that were are awaited, a snapshot is taken
//	           ── go on ──► all of them, once each holds its shards: commits go on, and each confirms that it still leads
//	           ◄── rows ─── of the snapshots, in the order of their keys
//
// A commit that follows from another one begins when that one is visible. While all shards are held none becomes visible
// anywhere. So what a snapshot has of one shard, such as a message that was received, has its cause in the snapshot of the
// other shard. A leader that was replaced meanwhile cannot confirm: then there is no moment. DESIGN.md has the reasons.
package moment

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/cluster"
	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

const (
	// heldMax is how long commits wait at most; usually it is as long as the slowest of those that were begun.
	heldMax = 2 * time.Second
	// confirmMax is how long a leader may take to hear that it still leads.
	confirmMax = 10 * time.Second
	// piece is how many bytes of rows travel together.
	piece = 64 << 10
)

// Service is a node's part. Its methods are safe for concurrent use.
type Service struct {
	store *persistence.Store
	rows  *fanout.Kind[moment, rows, struct{}]
	goOn  *fanout.Kind[moment, struct{}, struct{}]

	mu   sync.Mutex
	held map[string][]chan struct{} // guarded by mu; closed when all shards of a moment are held
}

// New has the node take part. It is called before the first question of another node.
func New(store *persistence.Store, of *fanout.Service) *Service {
	s := &Service{store: store, held: map[string][]chan struct{}{}}
	s.rows = fanout.NewKind(of, "moment", s.read)
	s.rows.Live = true
	s.goOn = fanout.NewKind(of, "moment held", s.release)
	return s
}

// moment names one that is being read.
type moment struct {
	ID string `json:"id"`
}

// rows are some of one shard, in the order of their keys, each as the lengths of key and value, key and value. None says
// that the shards are held.
type rows []byte

func (r rows) with(k, value []byte) rows {
	r = binary.AppendUvarint(binary.AppendUvarint(r, uint64(len(k))), uint64(len(value)))
	return append(append(r, k...), value...)
}

// next takes the first row away. A row without a key is none.
func (r *rows) next() (k, value []byte) {
	kLen, n := binary.Uvarint(*r)
	vLen, m := binary.Uvarint((*r)[max(n, 0):])
	rest := (*r)[max(n, 0)+max(m, 0):]
	if n <= 0 || m <= 0 || kLen > uint64(len(rest)) || vLen > uint64(len(rest))-kLen {
		return nil, nil
	}
	*r = rest[kLen+vLen:]
	return rest[:kLen:kLen], rest[kLen : kLen+vLen]
}

// AppendBinary implements encoding.BinaryAppender.
func (r rows) AppendBinary(dst []byte) ([]byte, error) { return append(dst, r...), nil }

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (r *rows) UnmarshalBinary(text []byte) error {
	*r = text
	return nil
}

func order(a, b rows) int {
	first, _ := a.next()
	other, _ := b.next()
	return bytes.Compare(first, other)
}

// Read calls set with the rows that a standalone store would have in the place of the cluster's, in the order of their
// keys, as they were at a moment after the call: without those of replicas, of the cluster and its nodes, and of indexes,
// which are built again. The slices are valid during the call. failure.ErrUnavailable: a shard has no leader, or another
// one since; it can be tried again.
func (s *Service) Read(ctx context.Context, set func(k, value []byte) error) error {
	m, all, held := &moment{rand.Text()}, slices.Collect(s.store.AllShards()), false
	_, err := s.rows.Merge(ctx, m, fanout.Merging[rows]{Shards: all, Order: order}, func(r rows) error {
		if !held { // NB: the first one comes when each part has one, and so is held
			held = true
			_, err := s.goOn.Merge(ctx, m, fanout.Merging[struct{}]{Shards: all}, func(struct{}) error { return nil })
			return err
		}
		for len(r) > 0 {
			k, value := r.next()
			if k == nil {
				return failure.Refuse(failure.ErrInternal, "rows of another node cannot be read")
			}
			if err := set(k, value); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// read is the part of the node that leads some shards.
func (s *Service) read(ctx context.Context, shards []key.Shard, m *moment, yield func(rows) error) (none struct{}, err error) {
	snapshot, err := s.hold(ctx, shards, m, yield)
	if err != nil {
		return none, failure.OfStore(err)
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	for _, sh := range shards {
		if err := send(snapshot, sh, yield); err != nil {
			return none, failure.OfStore(err)
		}
	}
	return none, nil
}

// hold takes a snapshot of some shards while all of the cluster are held, and returns when it is known that this node has
// led them meanwhile.
func (s *Service) hold(ctx context.Context, shards []key.Shard, m *moment, yield func(rows) error) (snapshot *persistence.Snapshot, err error) {
	goOn := make(chan struct{})
	defer s.keep(m, goOn)()
	bounded, release := context.WithTimeout(ctx, heldMax)
	defer release()
	epochs := map[*replica.Group]uint64{}
	for _, sh := range shards {
		g, epoch := s.store.Replica(sh), s.store.Epoch(sh)
		if g == nil || epoch == 0 {
			return nil, failure.Elsewhere(uint16(sh))
		}
		if _, held := epochs[g]; held {
			continue
		}
		epochs[g] = epoch
		free, err := g.Hold(bounded)
		context.AfterFunc(bounded, free) // NB: also while this goroutine waits for who reads
		if err != nil {
			return nil, failure.Errorf(failure.ErrUnavailable, "hold the shards from %d on: %w", sh, err)
		}
	}
	taken := s.store.Snapshot()
	defer func() {
		if err != nil {
			err = errors.Join(err, taken.Close())
		}
	}()
	if err := yield(nil); err != nil {
		return nil, err
	}
	select {
	case <-goOn:
	case <-bounded.Done():
	}
	if bounded.Err() != nil { // NB: asked behind goOn: until here the shards were held
		return nil, failure.Refuse(failure.ErrUnavailable, "not all shards could be held within %s: try again", heldMax)
	}
	release()
	confirming, cancel := context.WithTimeout(ctx, confirmMax)
	defer cancel()
	for g, epoch := range epochs {
		if err := s.store.AwaitLed(confirming, key.Shard(g.First()), epoch); err != nil {
			return nil, failure.Refuse(failure.ErrUnavailable, "another node leads a shard since: try again")
		}
	}
	return taken, nil
}

// keep notes who waits until all shards of a moment are held.
func (s *Service) keep(m *moment, goOn chan struct{}) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[m.ID] = append(s.held[m.ID], goOn)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held[m.ID] = slices.DeleteFunc(s.held[m.ID], func(c chan struct{}) bool { return c == goOn })
		if len(s.held[m.ID]) == 0 {
			delete(s.held, m.ID)
		}
	}
}

// release has who holds shards for a moment go on.
func (s *Service) release(_ context.Context, _ []key.Shard, m *moment, _ func(struct{}) error) (none struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, goOn := range s.held[m.ID] {
		close(goOn)
	}
	delete(s.held, m.ID) // NB: also where nobody holds any more
	return none, nil
}

// send gives the rows of a shard.
func send(snapshot *persistence.Snapshot, sh key.Shard, yield func(rows) error) error {
	var together rows
	err := snapshot.Scan(key.ShardPrefix(nil, sh), func(k, value []byte) error {
		value, kept, err := standalone(sh, k, value)
		if err != nil || !kept {
			return err
		}
		if together = together.with(k, value); len(together) < piece {
			return nil
		}
		err = yield(together)
		together = nil
		return err
	})
	if err == nil && len(together) > 0 {
		err = yield(together)
	}
	return err
}

// standalone is what a standalone store has in the place of a row of the cluster's.
func standalone(sh key.Shard, k, value []byte) (_ []byte, kept bool, err error) {
	if key.IsOfReplicas(k) {
		return nil, false, nil
	}
	if sh == key.Meta {
		if row, _ := key.Parse(k); cluster.Concerns(row) {
			return nil, false, nil
		} else if value, err = catalog.Standalone(row, value); err != nil {
			return nil, false, err
		}
	}
	return value, true, nil
}
