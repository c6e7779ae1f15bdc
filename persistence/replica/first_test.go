package replica

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/replica/internal/entry"
)

// TestAReplicaOfTheFirstEngine is refused, and recovered with what its log has beside the state.
func TestAReplicaOfTheFirstEngine(t *testing.T) {
	m := newMemory()
	number := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
	entry := func(kind byte, data []byte) string {
		head := append(binary.BigEndian.AppendUint64(nil, 3), kind)
		return string(head) + number(0) + "\x00\x00\x00\x01" + "x" + string(data)
	}
	m.rows = map[string]string{
		"state p": string(position{applied: 5, epoch: 4, revision: 1, term: 3}.encode()), "state s": `{"Index":2}`,
		"log vCurrentTerm": number(3), "log vLastVoteTerm": number(3), "row a": "1",
		"log l" + number(5): entry(0, writesOf(4, 0, "a1")),
		"log l" + number(6): entry(0, writesOf(4, 1, "b2")),
		"log l" + number(7): entry(5, []byte("members")),
	}
	o := Options{Store: m, LogPrefix: []byte("log "), StatePrefix: []byte("state ")}
	_, err := new(Host).Start(o, nil)
	require.ErrorIs(t, err, ErrFirstEngine)
	had, _, err := Recover(o, "A", 0)
	require.True(t, had && err == nil, "%v", err)
	assert.Equal(t, "2", m.rows["row b"], "what the log has is not in the rows")
	s, err := openState(m, o.StatePrefix, nil)
	require.NoError(t, err)
	l, err := openLog(m, o.LogPrefix, s.published)
	require.NoError(t, err)
	assert.Equal(t, []any{uint64(7), uint64(7), []string{"A"}}, []any{s.at.applied, l.mu.last, s.members.Voters})
	assert.NoError(t, checkEngine(&o))
}

// writesOf is the data of an entry of the first engine with one set of writes.
func writesOf(epoch, revision uint64, set string) []byte {
	data := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{1, byte(entry.Plain)}, epoch), revision)
	return append(binary.AppendUvarint(data, uint64(len(set))), set...)
}
