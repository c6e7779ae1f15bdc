package key

// Bulk appends the key of how far a bulk job is in sh.
func Bulk(dst []byte, sh Shard, job [16]byte) []byte {
	return append(BulkPrefix(dst, sh), job[:]...)
}

// BulkPrefix appends the prefix of all bulk jobs in sh.
func BulkPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, bulkTable) }

// Done appends the key that says that instance id of a workflow was done at a time in Unix milliseconds, 0 or later.
func Done(dst []byte, sh Shard, workflow string, when int64, id ID) []byte {
	return append(appendPlace(DonePrefix(dst, sh, workflow), when), id[:]...)
}

// DonePrefix appends the prefix of the instances of a workflow that are done, in the order of the times; they are
// [TimePlace]s.
func DonePrefix(dst []byte, sh Shard, workflow string) []byte {
	return appendText(appendHead(dst, sh, doneTable), workflow)
}

// DoneTime appends the key of when an instance was done.
func DoneTime(dst []byte, sh Shard, id ID) []byte {
	return append(appendHead(dst, sh, doneTimeTable), id[:]...)
}
