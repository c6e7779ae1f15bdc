// Package task has the worklists: what waits for whom, and what somebody has decided.
//
//	step ─► commit: record with its tasks, rows ─► worklists ─► List ─► rights, filter, texts
//	                        │                                            from the record
//	                        └─ durable ─► Feed ─► Watch
//
// A task is a part of its instance, which alone decides what it means (statemachine/DEFINITION.md, "Tasks"). The rows say only
// where to look:
//
//	task      of each open task: its workflow. One that was decided keeps it, with what it was
//	work      of each open task, for each of its worklists and orders; and of each decided one for who decided it
//	activity  comments and claims, which are no history
//	taskdraft what somebody has written for the form of an open task
//
// A task that nobody has stands in the worklist of each role, privilege and user that is a candidate, there with those of its workflow; one that somebody
// has only in theirs. So a list merges the few groups of its caller, and reads what it shows, however many tasks there are: those of workflows that the
// caller may not read are not even passed over. Rights are asked of the record, with the rules of now: a row gives nobody a right.
//
// # On whose goroutine
//
// Put writes rows into the commit of the instance. Lists read beside it, with a slot of the lists. The Feed is told by the journal's
// goroutine, or in a cluster by that of the replica, and never waits for a watcher.
package task
