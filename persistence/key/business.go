package key

import (
	"crypto/sha256"
	"encoding/binary"
)

// Business appends the key of the row that says which instance of a workflow has a business key. The row lies in the
// shard of BusinessShard, and so does the instance.
func Business(dst []byte, sh Shard, workflow, business string) []byte {
	return appendText(appendText(BusinessPrefix(dst, sh), workflow), business)
}

// BusinessPrefix appends the prefix of all these rows in sh.
func BusinessPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, businessTable) }

// BusinessShard is the shard, of so many, where a business key has its row and its instance. It is a part of the format
// on disk.
func BusinessShard(shards uint16, workflow, business string) Shard {
	sum := sha256.Sum256(appendText(appendText(nil, workflow), business))
	return Shard(binary.BigEndian.Uint64(sum[:8]) % uint64(shards))
}
