package fanout

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/failure"
	_ "troupe/internal/fixedseed"
	"troupe/persistence/key"
)

// nodes are the services of some nodes, with what their shards have.
type nodes struct {
	services []*Service
	kinds    []*Kind[int, int, int]
	// cut is called with the answer of another node, and returns what comes of it. Nil: all.
	cut func(answer []byte) (kept []byte, err error)

	// What is below mu is guarded by it while lists are asked for.
	mu     sync.Mutex
	leader []int // by shard; -1: nobody leads it
	rows   map[key.Shard][]int
	asked  []string // the nodes that were
	known  []int    // by node, what its rules are; the others none
}

func newNodes(n int, leader []int) *nodes {
	all := &nodes{leader: leader, rows: map[key.Shard][]int{}}
	for i := range n {
		s := New(&links{all, i}, &links{all, i}, uint16(len(leader))) //nolint:gosec // few
		all.services = append(all.services, s)
		all.kinds = append(all.kinds, NewKind(s, "numbers", func(_ context.Context, shards []key.Shard, from *int, yield func(int) error) (int, error) {
			var mine []int
			for _, sh := range shards {
				leader, rows := all.at(sh)
				if leader != i {
					return 0, failure.Elsewhere(uint16(sh))
				}
				mine = append(mine, rows...)
			}
			slices.Sort(mine)
			for _, row := range mine {
				if row < *from {
					continue
				}
				if err := yield(row); err != nil {
					return 0, err
				}
			}
			return len(mine), nil
		}))
	}
	return all
}

func (n *nodes) at(sh key.Shard) (leader int, rows []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leader[sh], n.rows[sh]
}

func (n *nodes) lead(sh key.Shard, leader int, rows ...int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leader[sh], n.rows[sh] = leader, append(n.rows[sh], rows...)
}

// links are those of a node.
type links struct {
	*nodes
	self int
}

func (l *links) Leader(ctx context.Context, sh key.Shard) (string, error) {
	for {
		leader, _ := l.at(sh)
		switch {
		case leader == l.self:
			return "", nil
		case leader >= 0:
			return fmt.Sprint(leader), nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return "", failure.ErrUnavailable
		}
	}
}

func (l *links) Known() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.self >= len(l.known) {
		return 0
	}
	return uint64(l.known[l.self]) //nolint:gosec // few
}

func (l *links) CatchUp(known uint64) error {
	if l.Known() < known {
		return failure.ErrUnavailable
	}
	return nil
}

func (l *links) Ask(ctx context.Context, node string, question []byte) (io.ReadCloser, error) {
	l.mu.Lock()
	l.asked = append(l.asked, node)
	l.mu.Unlock()
	var to int
	if _, err := fmt.Sscan(node, &to); err != nil {
		return nil, err
	}
	var answer bytes.Buffer
	if err := l.services[to].Answer(ctx, question, &answer, func() error { return nil }); err != nil {
		return nil, err
	}
	if l.cut != nil {
		kept, err := l.cut(answer.Bytes())
		if err != nil {
			return nil, err
		}
		answer = *bytes.NewBuffer(kept)
	}
	return io.NopCloser(&answer), nil
}

func (n *nodes) list(at, from int) (got []int, total int, err error) {
	ends, err := n.kinds[at].Merge(context.Background(), &from, Merging[int]{Order: cmp.Compare[int], Ahead: 2}, func(row int) error {
		got = append(got, row)
		return nil
	})
	for _, end := range ends {
		total += end
	}
	return got, total, err
}

// TestAMergedListHasEveryRowInOrder: wherever the shards are led, and whoever is asked.
func TestAMergedListHasEveryRowInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const count = 5
		n := newNodes(count, rapid.SliceOfN(rapid.IntRange(0, count-1), 1, 9).Draw(t, "leaders"))
		var want []int
		for sh := range n.leader {
			rows := rapid.SliceOfN(rapid.IntRange(0, 50), 0, 8).Draw(t, "rows")
			n.rows[key.Shard(sh)] = rows //nolint:gosec // few
			want = append(want, rows...)
		}
		slices.Sort(want)
		got, total, err := n.list(rapid.IntRange(0, count-1).Draw(t, "asked"), 0)
		assert.NoError(t, err)
		assert.True(t, slices.Equal(want, got), "got %v, want %v", got, want)
		assert.Equal(t, len(want), total)
	})
}

// TestAListHasNoHole: wherever an answer is cut off, also where nothing says that it was, and however else it does not
// come whole, the list is refused. Last comes a planted mistake, a node that says it has nothing: only that makes a hole.
func TestAListHasNoHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(3, []int{0, 1, 2, 1})
		for sh := range n.leader {
			n.rows[key.Shard(sh)] = []int{10 + sh, 20 + sh} //nolint:gosec // few
		}
		longest := 0
		n.cut = func(answer []byte) ([]byte, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			longest = max(longest, len(answer))
			return answer, nil
		}
		want, _, err := n.list(0, 0)
		require.NoError(t, err)
		require.Len(t, want, 8)
		ways := map[string]func(answer []byte) ([]byte, error){
			"lost":            func([]byte) ([]byte, error) { return nil, failure.ErrUnavailable },
			"an empty piece":  func(answer []byte) ([]byte, error) { return append([]byte{0}, answer...), nil },
			"a large piece":   func([]byte) ([]byte, error) { return binary.AppendUvarint(nil, pieceMax+1), nil },
			"another letter":  func(answer []byte) ([]byte, error) { return append([]byte{1, 'y'}, answer...), nil },
			"behind its end":  func(answer []byte) ([]byte, error) { return append(answer, 1), nil },
			"a broken number": func(answer []byte) ([]byte, error) { return append([]byte{2, 'i', 'x'}, answer...), nil },
		}
		for at := range longest {
			ways[fmt.Sprint("cut at ", at)] = func(answer []byte) ([]byte, error) { return answer[:min(at, len(answer)-1)], nil }
		}
		for name, way := range ways {
			n.cut = way
			got, _, err := n.list(0, 0)
			assert.ErrorIs(t, err, failure.ErrUnavailable, "%s: got %v", name, got)
		}
		n.cut = func([]byte) ([]byte, error) { return []byte{2, pieceEnd, '0'}, nil }
		got, _, err := n.list(0, 0)
		assert.True(t, err == nil && len(got) < len(want), "the hole of a part that is left out: got %v, %v", got, err)
	})
}

// TestAShardWithoutALeader is waited for, ten seconds at most.
func TestAShardWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(3, []int{0, -1, 2})
		begun := time.Now()
		_, _, err := n.list(0, 0)
		assert.ErrorIs(t, err, failure.ErrUnavailable)
		assert.Equal(t, LeaderMax, time.Since(begun))
		n.rows[1] = []int{7}
		time.AfterFunc(3*time.Second, func() { n.lead(1, 2) })
		got, _, err := n.list(0, 0)
		assert.True(t, err == nil && slices.Equal(got, []int{7}), "got %v, %v", got, err)
	})
}

// TestALeaderThatIsNoneAnyMore: the part is asked of the next one.
func TestALeaderThatIsNoneAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(3, []int{0, 1})
		n.rows[1] = []int{7}
		n.cut = func(answer []byte) ([]byte, error) {
			if leader, _ := n.at(1); leader == 1 {
				n.lead(1, 2)
				return nil, failure.ErrUnavailable
			}
			return answer, nil
		}
		got, _, err := n.list(0, 0)
		assert.True(t, err == nil && slices.Equal(got, []int{7}), "got %v, %v", got, err)
		assert.Equal(t, []string{"1", "2"}, n.asked)
	})
}

// TestALeaderWithOlderRules answers when its rules are those of the node that is asked.
func TestALeaderWithOlderRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(3, []int{0, 1, 2})
		n.rows[1], n.rows[2] = []int{7}, []int{8}
		n.known = []int{5, 4, 6}
		time.AfterFunc(3*time.Second, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.known[1] = 5
		})
		begun := time.Now()
		got, _, err := n.list(0, 0)
		assert.True(t, err == nil && slices.Equal(got, []int{7, 8}), "got %v, %v", got, err)
		assert.GreaterOrEqual(t, time.Since(begun), 3*time.Second)
		n.known[0] = 6
		_, _, err = n.list(0, 0)
		assert.ErrorIs(t, err, failure.ErrUnavailable, "when it never is")
	})
}

// TestWhatIsRefusedElsewhereIsRefused: with its kind and its reason, at once.
func TestWhatIsRefusedElsewhereIsRefused(t *testing.T) {
	n := newNodes(2, []int{1})
	for _, s := range n.services {
		NewKind(s, "refused", func(context.Context, []key.Shard, *int, func(int) error) (int, error) {
			return 0, failure.Refuse(failure.ErrInvalid, "no such number")
		})
	}
	k := &Kind[int, int, int]{service: n.services[0], name: "refused"}
	_, err := k.Merge(context.Background(), new(int), Merging[int]{Order: cmp.Compare[int]}, nil)
	of := failure.Of(cmp.Or(err, errors.New("nothing")))
	assert.True(t, of.Kind == failure.ErrInvalid && of.Reason == "no such number", "got %v", err)
	k.name = "unknown"
	_, err = k.Merge(context.Background(), new(int), Merging[int]{Order: cmp.Compare[int]}, nil)
	assert.Error(t, err)
}

// TestFollowDoesNotWaitForAShardWithoutALeader: what others have comes meanwhile, and for ten seconds it goes on.
func TestFollowDoesNotWaitForAShardWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(3, []int{0, 1, -1, 2})
		n.rows[0], n.rows[1], n.rows[3] = []int{1}, []int{2}, []int{3}
		follow := func(until int) (got map[int]time.Duration, err error) {
			begun, got := time.Now(), map[int]time.Duration{}
			err = n.kinds[0].Follow(t.Context(), nil, func([]key.Shard) *int { at := 0; return &at }, func(row int) error {
				if _, again := got[row]; !again {
					got[row] = time.Since(begun)
				}
				if row == until {
					return ErrEnough
				}
				return nil
			})
			return got, err
		}
		time.AfterFunc(7*time.Second, func() { n.lead(2, 1, 4) })
		got, err := follow(4)
		assert.NoError(t, err)
		for row, within := range map[int]time.Duration{1: time.Second, 2: time.Second, 3: time.Second, 4: 8 * time.Second} {
			at, seen := got[row]
			assert.True(t, seen && at <= within, "%d came after %s", row, at)
		}
		n.lead(2, -1)
		begun := time.Now()
		_, err = follow(5)
		assert.ErrorIs(t, err, failure.ErrUnavailable, "for ever")
		took := time.Since(begun)
		assert.True(t, took >= LeaderMax && took <= LeaderMax+time.Second, "it took %s", took)
	})
}

// TestFollowGoesOnWithTheNextLeader: with what it is to be asked then.
func TestFollowGoesOnWithTheNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(3, []int{0, 1})
		n.rows[0], n.rows[1] = []int{1, 2}, []int{3, 4}
		next := 0
		var got []int
		err := n.kinds[0].Follow(t.Context(), nil, func([]key.Shard) *int { at := next; return &at }, func(row int) error {
			got = append(got, row)
			if next = max(next, row+1); row == 4 { // NB: each part has ended by now: that of the first is asked on, in vain
				n.lead(1, 2, 5)
			}
			if row == 5 {
				return ErrEnough
			}
			return nil
		})
		assert.NoError(t, err)
		slices.Sort(got)
		assert.Equal(t, []int{1, 2, 3, 4, 5}, got)
		assert.Contains(t, n.asked, "2")
	})
}

// TestFollowGoesOnAfterALongSilence: a part that has nothing to tell can be read, so its end is the first failure.
func TestFollowGoesOnAfterALongSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(3, []int{1})
		var kinds []*Kind[int, int, int]
		var broken atomic.Bool
		for i, s := range n.services {
			kinds = append(kinds, NewKind(s, "quiet", func(ctx context.Context, shards []key.Shard, _ *int, yield func(int) error) (int, error) {
				for ctx.Err() == nil {
					leader, rows := n.at(shards[0])
					switch {
					case leader != i:
						return 0, failure.Elsewhere(uint16(shards[0]))
					case broken.Load():
						return 0, failure.ErrUnavailable
					case len(rows) > 0:
						return 0, yield(rows[0])
					}
					<-time.After(time.Second)
				}
				return 0, ctx.Err()
			}))
		}
		follow := func() (got []int, err error) {
			err = kinds[0].Follow(t.Context(), nil, func([]key.Shard) *int { return new(int) }, func(row int) error {
				got = append(got, row)
				return ErrEnough
			})
			return got, err
		}
		for after, leader := range map[time.Duration]int{LeaderMax * 2: 2, LeaderMax * 4: 0, LeaderMax * 6: -1} {
			time.AfterFunc(after, func() { n.lead(0, leader) })
		}
		time.AfterFunc(LeaderMax*6+LeaderMax/2, func() { n.lead(0, 2, 7) })
		got, err := follow()
		assert.True(t, err == nil && slices.Equal(got, []int{7}), "got %v, %v", got, err)

		n.rows[0] = nil
		time.AfterFunc(LeaderMax*2, func() { broken.Store(true) })
		begun := time.Now()
		_, err = follow()
		took := time.Since(begun)
		assert.ErrorIs(t, err, failure.ErrUnavailable, "a leader that cannot read any more")
		assert.True(t, took > LeaderMax*3 && took < LeaderMax*3+2*time.Second, "it took %s", took)
	})
}

// TestPatience: a node that does not answer in time is waited for once. What it brings later is given back, and from its answer on it is
// waited for again: that to what it was asked, or to a probe.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes, late atomic.Int32
		answers := make(chan error)
		p := &Patience{Most: 3 * time.Second, Probe: func(ctx context.Context, node string) error {
			probes.Add(1)
			assert.Equal(t, "b", node)
			return context.Cause(ctx)
		}}
		ask := func(node string, ask func(context.Context) error) (took time.Duration, err error) {
			begun := time.Now()
			err = p.Ask(t.Context(), node, time.Second, ask, func() { late.Add(1) })
			return time.Since(begun), err
		}
		stuck := func(ctx context.Context) error {
			select {
			case err := <-answers:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		quick := func(context.Context) error { return nil }
		took, err := ask("b", stuck)
		assert.ErrorIs(t, err, ErrSilent)
		assert.Equal(t, time.Second, took)
		took, err = ask("b", quick)
		assert.ErrorIs(t, err, ErrSilent)
		assert.Zero(t, took)
		took, err = ask("a", quick)
		assert.True(t, err == nil && took == 0, "another node: %s, %v", took, err)

		answers <- nil
		synctest.Wait()
		assert.EqualValues(t, 1, late.Load())
		_, err = ask("b", quick)
		assert.NoError(t, err, "it has answered")

		_, err = ask("b", stuck)
		assert.ErrorIs(t, err, ErrSilent)
		<-time.After(5 * time.Second)
		assert.EqualValues(t, 2, late.Load(), "after Most")
		assert.Zero(t, probes.Load(), "nobody wants it")
		_, err = ask("b", quick)
		assert.ErrorIs(t, err, ErrSilent)
		synctest.Wait()
		assert.EqualValues(t, 1, probes.Load())
		took, err = ask("b", func(context.Context) error { return failure.ErrNotFound })
		assert.True(t, errors.Is(err, failure.ErrNotFound) && took == 0, "%s, %v", took, err)
	})
}
