package key

import "encoding/binary"

// List appends the key of instance id in one of a user's lists. list is the caller's letter for the sort of list, when
// a time in Unix milliseconds, 0 or later.
func List(dst []byte, sh Shard, list byte, user string, when int64, id ID) []byte {
	dst = ListPrefix(dst, sh, list, user)
	return append(binary.BigEndian.AppendUint64(dst, ^uint64(when)), id[:]...)
}

// ListPrefix appends the prefix of one of a user's lists in sh: the newest come
// first, those of the same time in the order of their ids.
func ListPrefix(dst []byte, sh Shard, list byte, user string) []byte {
	return appendText(ListsPrefix(dst, sh, list), user)
}

// ListsPrefix appends the prefix of the lists of one letter of all users in sh.
func ListsPrefix(dst []byte, sh Shard, list byte) []byte {
	return append(appendHead(dst, sh, listTable), list)
}
