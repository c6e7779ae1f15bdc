package replicatest_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
)

// told is what somebody was told, in order.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (l *told) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *told) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

func (l *told) Led(sh key.Shard, epoch uint64)   { l.note("led %d in %d", sh, epoch) }
func (l *told) Ended(sh key.Shard, epoch uint64) { l.note("ended %d in %d", sh, epoch) }
func (l *told) Replaced()                        { l.note("replaced") }
func (l *told) Changed(keys [][]byte) {
	for _, rowKey := range keys {
		k, _ := key.Parse(rowKey)
		l.note("changed %s %s", k.Table, k.Name)
	}
}

// TestWhoComesLateIsToldWhatIsLed: parts of a program are made after the store is open.
func TestWhoComesLateIsToldWhatIsLed(t *testing.T) {
	onNodes(t, 3, 1, func(t *testing.T, c *replicatest.Cluster) {
		leads, follows := make([]told, 3), make([]told, 3)
		for i, n := range c.Nodes {
			n.Store.FollowLeads(&leads[i])
			n.Store.Follow(&follows[i])
		}
		first := c.Nodes[0].Store
		epochs := map[key.Shard]uint64{0: first.Epoch(0), key.Meta: first.Epoch(key.Meta)}
		got := leads[0].take()
		slices.Sort(got)
		want := []string{fmt.Sprintf("led 0 in %d", epochs[0]), fmt.Sprintf("led %d in %d", key.Meta, epochs[key.Meta])}
		assert.True(t, slices.Equal(got, want), "the leader's part was told %q, want %q", got, want)
		w := first.NewBatch(key.Meta)
		w.Set(key.Setting(nil, "any"), []byte("value"))
		require.NoError(t, storeWrites(first, w))
		clocktest.Advance(time.Second)
		for i := range follows {
			assert.Equal(t, []string{"changed setting any"}, follows[i].take(), "node %d was told", i)
		}
		assert.NoError(t, c.Close())
		got = leads[0].take()
		slices.Sort(got)
		want = []string{fmt.Sprintf("ended 0 in %d", epochs[0]), fmt.Sprintf("ended %d in %d", key.Meta, epochs[key.Meta])}
		assert.True(t, slices.Equal(got, want), "at the end the leader's part was told %q, want %q", got, want)
	})
}

// onNodes runs a test in virtual time on some nodes, which are closed at the end.
func onNodes(t *testing.T, nodes, shards int, test func(t *testing.T, c *replicatest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := replicatest.Start(t.Context(), replicatest.Options{Nodes: nodes, Shards: shards})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, c.Close()) })
		test(t, c)
	})
}

func storeWrites(s *persistence.Store, w *persistence.Batch) error {
	done := make(committed, 1)
	s.Append(w, done)
	return <-done
}

type committed chan error

func (c committed) Committed(err error) { c <- err }
