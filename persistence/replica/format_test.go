package replica_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence"
	"troupe/persistence/internal/file"
	"troupe/persistence/replica/replicatest"
)

// TestAStoreWithReplicasKeepsItsFormat: the level of the cluster says what is written, and until it goes up the
// program before can open the store again.
func TestAStoreWithReplicasKeepsItsFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		o := persistence.Options{FS: fs, FreeBytesMin: -1, CommitWaitMax: time.Hour, Shards: 2, MemTableBytes: 256 << 10, CacheBytes: 1 << 20}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		s, err := persistence.Open("db", o)
		must(err)
		must(errors.Join(s.Found("only"), s.Close()))
		for _, version := range []int{9, 7, 5, 3} { // Found has made it 9
			text := string(file.Seal(fmt.Appendf(nil, "troupe store\nformat %d\nshards 2\n", version)))
			if version != 9 {
				must(file.Replace(fs, "db", "FORMAT", []byte(text)))
			}
			if _, err := persistence.Open("db", o); !errors.Is(err, persistence.ErrReplicated) {
				t.Errorf("format %d without replicas: got %v, want ErrReplicated", version, err)
			}
			with := o
			with.Replication = &persistence.Replication{Node: "only", Streams: replicatest.NewNetwork().Streams("only"), LogWriteMax: time.Hour}
			s, err := persistence.Open("db", with)
			must(err)
			must(s.Close())
			f, err := fs.Open(fs.PathJoin("db", "FORMAT"))
			must(err)
			got, err := io.ReadAll(f)
			must(errors.Join(err, f.Close()))
			if string(got) != text {
				t.Errorf("opening leaves %q, want %q", got, text)
			}
		}
	})
}
