// Package form is what makes a workflow instance a form or a checklist: a small record beside the instance's own, and
// the row that a list of its owner shows. The row is in the list of what is current, under way or done, and moves when
// a commit changes that, so a list costs what it shows. An instance that is no form has a row, too (CreatorRow).
// Record, row and drafts are values, which the commits of the instance write: a list never disagrees with the instance.
// Nothing here reads a clock.
package form
