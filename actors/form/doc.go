// Package form is what makes a workflow instance a form or a checklist: a small
// record beside the instance's own, and the row that the list of its owner shows.
//
//	created ──► draft ──first move──► submitted ──every machine final──► done
//	              ▲                      │
//	              └── back at the start ─┘
//
// The record is written in the commits of its instance (package workflow), and
// so is the row: a list never disagrees with the instance. Both are values;
// nothing here reads a clock or a store.
package form
