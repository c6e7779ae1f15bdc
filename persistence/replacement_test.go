package persistence

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/key"
)

// TestACopyTakesRowsOfItsShardOnly: another node must not be able to end this one, or to change
// other shards.
func TestACopyTakesRowsOfItsShardOnly(t *testing.T) {
	s := open(t, sharded(2))
	for _, test := range []struct {
		sh   key.Shard
		key  []byte
		good bool
	}{
		{1, key.Record(nil, 1, "w", key.ID{}), true},
		{1, key.Record(nil, 0, "w", key.ID{}), false},
		{1, key.Record(nil, key.Meta, "w", key.ID{}), false},
		{key.Meta, key.Setting(nil, "a"), true},
		{key.Meta, key.Record(nil, 1, "w", key.ID{}), false},
		{key.Meta, []byte{0xFF, 0xFF, 0xFF}, false},
		{1, nil, false},
		{0, []byte{0}, false},
	} {
		copied, err := localRows{s, test.sh}.Replace()
		require.NoError(t, err)
		err = copied.Set(test.key, nil)
		assert.Equal(t, test.good, err == nil, "key %x in a copy of shard %d: got %v", test.key, test.sh, err)
		copied.Abort()
	}
}
