package storetest

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/persistence"
)

// TestCrashesFindJournalsWithABug is the control: a journal that acknowledges before the sync
// (persistence/PROMISES.md, "F8"), and one that writes in halves. The power goes at every write of
// a load, one after the other, and of what was not synced all is lost, or nothing: at one of these
// moments the bug must show.
func TestCrashesFindJournalsWithABug(t *testing.T) {
	store := Store(persistence.Options{Shards: 4, MemTableBytes: 64 << 10, CacheBytes: 1 << 20, FreeBytesMin: -1})
	for name, open := range map[string]Opener{
		"early acknowledgement": EarlyAck(store),
		"split batch":           SplitBatch(store),
	} {
		t.Run(name, func(t *testing.T) {
			base, err := emptyJournal(open)
			require.NoError(t, err)
			for k := int64(1); ; k++ {
				for _, survivors := range []int{0, 100} {
					c := crash{open: open, pct: survivors, rng: rand.New(rand.NewPCG(1, 1)), load: newWorkload(1, 20)}
					left, acked, err := c.cut(base, k)
					switch {
					case err != nil:
						t.Fatal(err)
					case left == nil:
						t.Fatalf("the load has ended after %d writes, and nothing was found", k-1)
					}
					if found := c.check(left, acked); found != nil {
						t.Logf("at write %d, when %d %% survive: %v", k, survivors, found)
						return
					}
				}
			}
		})
	}
}
