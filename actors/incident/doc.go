// Package incident keeps what failed and is no event that an instance could take again: a step that failed for whoever
// sent its event, an instance that sends itself events without end, a tree of instances over its limit. Note counts in
// memory; what waits is written at most once a second, in one commit for each shard, where the shard is led (Put); a
// crash loses the counts of the last second. There is one row for each kind, workflow, version and place: their hash
// names it and chooses its shard. Its id ends with when it came first and a random number, so that one that comes again
// after it was dropped is another one.
package incident
