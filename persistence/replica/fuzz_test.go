package replica

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// FuzzACopyFromAnotherNode: whatever a node sends as the rows of a shard, it is put in place
// whole or refused.
func FuzzACopyFromAnotherNode(f *testing.F) {
	at := append([]byte{0, 0, 0, 3, 0, 0, 0, 4 * 8, 'a', ' ', 'p'}, position{applied: 5, epoch: 4}.encode()...)
	f.Add(append(bytes.Clone(at), 0, 0, 0, 1, 0, 0, 0, 1, 'b', 'c'))
	f.Add(at[:len(at)-1])
	f.Add([]byte{0, 0, 0, 3, 0, 0, 0, 1, 'a', ' ', 'p', 5})
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
			err = errors.Join(err, sink.Cancel())
		} else {
			err = sink.Close()
		}
		if _, is := m.rows["old"]; is != (len(sent) == 0 || err != nil) {
			t.Errorf("the old rows are there: %v; the answer was %v", is, err)
		}
		if again, opened := openState(m, []byte("a "), nil); opened != nil || newSnapshots(m, []byte("a "), again).check() != nil {
			t.Errorf("nobody can start on what is there: %v (%v)", opened, err)
		}
	})
}
