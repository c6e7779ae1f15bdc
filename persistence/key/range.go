package key

import "bytes"

// EveryShard stands for all numbered shards in a prefix that is read. No key is written with it.
const EveryShard Shard = 0xFFFE

// Range is a part of the keys that begin with a prefix. With a prefix that was built
// for EveryShard it is that part in each numbered shard.
type Range struct {
	Prefix []byte
	// From and To bound what follows the prefix: from From up to but not including To. Nil: no bound.
	From, To []byte
}

// In returns the bounds in a shard.
func (r Range) In(sh Shard) (lower, upper []byte) {
	prefix := r.Prefix
	if r.IsEveryShard() {
		prefix = append(ShardPrefix(make([]byte, 0, len(prefix)), sh), prefix[shardBytes:]...)
	}
	prefix = prefix[:len(prefix):len(prefix)]
	if r.To == nil {
		return append(prefix, r.From...), PrefixEnd(prefix)
	}
	return append(prefix, r.From...), append(prefix, r.To...)
}

// IsEveryShard says whether the range is one of each numbered shard.
func (r Range) IsEveryShard() bool { return bytes.HasPrefix(r.Prefix, everyShard) }

var everyShard = ShardPrefix(nil, EveryShard)

// shardBytes is how long the shard at the front of a key is.
const shardBytes = 2
