// Package form is what makes a workflow instance a form or a checklist: a small
// record beside the instance's own, and the row that the list of its owner shows.
//
//	created ──► draft ──first move──► submitted ──every machine final──► done
//	              ▲                      │
//	              └── back at the start ─┘
//
// A user can keep a draft of what will be submitted next.
//
// Record, row and drafts are values, which the commits of the instance write (package
// workflow): a list never disagrees with the instance. LoadDraft and List read them
// from the store. Nothing here reads a clock.
package form
