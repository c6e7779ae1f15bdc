// Package schedule creates instances when the schedules of their workflows are due.
//
//	clock ──► Service ──► pool, fair between workflows ──► Create: the instance and the schedule's row, in one commit
//	people ── pause, resume, run ──────────────────────────────┘
//
// A schedule belongs to a shard, which its workflow and name choose, and runs where that is led; its instances are in that shard,
// too. Its row says up to which time all runs were made, so that each is made once, whoever leads and whatever stops in between.
//
// # What the caller must do
//
// Create makes an instance under an id, with writes in its commit, and is asked again after an error that may pass; when the
// instance is there it has nothing to do. Stop before the store is closed.
package schedule
