// Package form is what makes a workflow instance a form or a checklist: a small record beside the instance's own, and
// the row that a list of its owner shows. An instance that is no form has a row, too (CreatorRow).
//
//	created ──► draft ──first move──► submitted ──every machine final──► done
//	              ▲                      │
//	              └── back at the start ─┘
//
// The row is in the list of what is current, under way or done, and moves when a commit changes that. So a list costs
// what it shows, however much a user has completed.
//
// A user can keep a draft of what will be submitted next.
//
// Record, row and drafts are values, which the commits of the instance write (package workflow): a list never disagrees
// with the instance. LoadDraft and List read them from the store. Nothing here reads a clock.
package form
