package replica_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/key"
)

// TestWhoStopsAnswersAll: Raft does not answer what it has committed, and not applied, when it is shut down; and
// whoever waits for that would wait for ever (persistence/PROMISES.md, "F23").
func TestWhoStopsAnswersAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, 1, 1)
		s := c.Nodes[0].Store
		slow := slowFollower{begun: make(chan struct{}, 100), release: make(chan struct{})}
		s.Follow(slow)
		const writes = 8 // that Raft applies the last of them by chance, and leaves none, happens once in a hundred times
		done := make(committed, writes)
		for range writes {
			w := s.NewBatchIn(key.Meta, s.Epoch(key.Meta))
			w.Set(key.Setting(nil, "any"), []byte("value"))
			s.Append(w, done)
			synctest.Wait()
		}
		<-slow.begun
		stopped := make(chan struct{})
		go func() {
			s.Replica(key.Meta).Stop()
			close(stopped)
		}()
		synctest.Wait()
		close(slow.release)
		select {
		case <-stopped:
		case <-time.After(time.Hour):
			t.Fatal("it does not stop")
		}
		for range writes {
			err := <-done
			assert.NoError(t, err, "what was committed was told")
		}
	})
}

// slowFollower takes its time over every change.
type slowFollower struct{ begun, release chan struct{} }

func (f slowFollower) Changed([][]byte) {
	f.begun <- struct{}{}
	<-f.release
}

func (slowFollower) Replaced() {}
