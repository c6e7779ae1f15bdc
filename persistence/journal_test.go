package persistence

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/key"
)

const turnWriters, turnsEach = 8, 100

// turns are the answers to several writers at once. Only Committed touches next, as nobody is told beside another.
type turns struct {
	next   [turnWriters]int // that each writer expects
	left   sync.WaitGroup
	inside atomic.Int32
	wrong  atomic.Pointer[string]
}

// turn is the n-th write of a writer.
type turn struct {
	of        *turns
	writer, n int
}

func (w turn) Committed(err error) {
	if w.of.inside.Add(1) != 1 || w.of.next[w.writer] != w.n || err != nil {
		wrong := fmt.Sprintf("writer %d was told %v for %d, want %d, and nobody at the same time", w.writer, err, w.n, w.of.next[w.writer])
		w.of.wrong.Store(&wrong)
	}
	w.of.next[w.writer]++
	w.of.inside.Add(-1)
	w.of.left.Done()
}

// TestWritersAtOnce: the changes of one append come together, to readers as well; counters add up, also after a loss of
// power; and each waiter is told once, in the order of its writer's appends. With replicas, too.
func TestWritersAtOnce(t *testing.T) {
	for _, group := range []bool{false, true} {
		t.Run(fmt.Sprint("in a group: ", group), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStory(t, group)
				require.Equal(t, "ok", s.open(nil))
				var told turns
				told.left.Add(turnWriters * turnsEach)
				var writers sync.WaitGroup
				for n := range turnWriters {
					writers.Go(func() {
						for i := range turnsEach {
							w := s.store.NewBatch(1)
							for row := range uint64(10) {
								w.Set(key.Entry(nil, 1, key.ID{}, row), fmt.Append(nil, n, i))
							}
							w.Add(key.Count(nil, 1, "wf", 1), 3)
							w.Add(key.Count(nil, 1, "wf", 2), -1)
							s.store.Append(w, turn{&told, n, i})
						}
					})
				}
				var done atomic.Bool
				var reader sync.WaitGroup
				reader.Go(func() {
					for !done.Load() {
						values := map[string]bool{}
						must(t, s.store.Scan(key.EntryPrefix(nil, 1, key.ID{}), func(_, value []byte) error { values[string(value)] = true; return nil }))
						assert.LessOrEqual(t, len(values), 1, "one scan saw %v", values)
					}
				})
				writers.Wait()
				done.Store(true)
				reader.Wait()
				told.left.Wait()
				wantCounts := func(when string) {
					for version, want := range map[uint64]int64{1: 3 * turnWriters * turnsEach, 2: -turnWriters * turnsEach} {
						got, err := s.store.Count(key.Count(nil, 1, "wf", version))
						assert.True(t, err == nil && got == want, "%s: counter %d is %d, %v, want %d", when, version, got, err, want)
					}
				}
				wantCounts("running")
				s.do("crash", nil, "") // it closes the store
				assert.Nil(t, told.wrong.Load())
				for n, next := range told.next {
					assert.Equal(t, turnsEach, next, "writer %d: answers", n)
				}
				require.Equal(t, "ok", s.open(nil))
				wantCounts("after a loss of power")
				must(t, s.store.Close())
			})
		})
	}
}
