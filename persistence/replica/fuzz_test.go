package replica

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		require.NoError(t, err)
		saved := newSnapshots(m, []byte("a "), s)
		sink, err := saved.Create(raft.SnapshotVersionMax, 4, 7, raft.Configuration{}, 1, nil)
		require.NoError(t, err)
		_, err = sink.Write(sent)
		if err != nil {
			err = errors.Join(err, sink.Cancel())
		} else {
			err = sink.Close()
		}
		_, is := m.rows["old"]
		assert.Equal(t, len(sent) == 0 || err != nil, is, "the old rows are there, %v", err)
		again, opened := openState(m, []byte("a "), nil)
		assert.True(t, opened == nil && newSnapshots(m, []byte("a "), again).check() == nil, "nobody can start on what is there: %v (%v)", opened, err)
	})
}
