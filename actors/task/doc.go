// Package task has the worklists: what waits for whom, and what somebody has decided. A task is a part of its instance,
// which alone decides what it means (statemachine/DEFINITION.md, "Tasks"); rows say only where to look. A task that
// nobody has stands in the worklist of each role, privilege and user that is a candidate, there with those of its
// workflow; one that somebody has only in theirs. So a list merges the few groups of its caller and reads what it
// shows. Rights are asked of the record, with the rules of now: a row gives nobody a right. Put writes rows into the
// commit of the instance; lists read beside it; the Feed never waits for a watcher.
package task
