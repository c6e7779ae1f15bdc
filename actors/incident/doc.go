// Package incident keeps what failed and is no event that an instance could take again: a step that failed for whoever sent its event, an
// instance that sends itself events without end, a tree of instances over its limit.
//
//	step that failed ─► Note: counts in memory ─► at most once a second ─► Put: one commit in the shard of the place
//	                                                                          │ led elsewhere
//	                                                                          └─► Options.Elsewhere ─► Put of that node
//	GET incidents ◄── package pending ◄── rows of all shards
//
// There is one row for each kind, workflow, version and place, whoever fails there and on whatever node: the hash of the four names it and
// chooses its shard. Its id has, behind that, when it came first and a random number, so that one that was dropped and comes again is
// another one.
//
// # What it costs
//
//	Note     a hash and a lock, no write; a failure that is noted before it is written costs no more memory
//	writing  once a second for all of a shard together, one scan of the at most 256 rows of the shard
//	a crash  loses the counts of the last second
//
// Whoever has a place of its own sets Row.Place: an incident of kind Loop has the instance there, of kind Tree its root.
package incident
