package replica

import (
	"testing"

	"github.com/hashicorp/raft"
)

// FuzzACopyFromAnotherNode: whatever a node sends as the rows of a shard, it is put in place
// whole or refused.
func FuzzACopyFromAnotherNode(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 'a', 'b'})
	f.Add([]byte{0, 0, 0, 3, 0, 0, 0, 0, 'a', ' ', 's', 0, 0, 0, 1, 0, 0, 0, 0, 'b'})
	f.Fuzz(func(t *testing.T, sent []byte) {
		m := newMemory()
		m.rows["old"] = "row"
		s, err := openState(m, []byte("a "), nil)
		if err != nil {
			t.Fatal(err)
		}
		saved := newSnapshots(m, []byte("a "), s)
		sink, err := saved.Create(raft.SnapshotVersionMax, 4, 7, raft.Configuration{}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = sink.Write(sent)
		if err != nil {
			err = sink.Cancel()
		} else {
			err = sink.Close()
		}
		if _, is := m.rows["old"]; !is && m.rows["a s"] == "" {
			t.Errorf("the copy is in place without its own row (%v)", err)
		}
	})
}
