// Package formportal is the form portal, group A of the interface, and the form runtime in which people fill in forms
// (gateway/INTERFACE.md, "Groups"). A form is a workflow instance with a record beside it (package form); one that is
// bound to no workflow is an instance of PlainWorkflow, so it has a history, a durable life and idempotency keys like
// any other. The form of a task is filled in the same way. Templates come from files by ParseTemplate and
// Templates.Publish.
//
// What a caller may not see is ErrNotFound, in the same words as what is not there. A list shows one moment and wakes
// no instance. The caller does AddPlainWorkflow before the catalog is used, then Start, any number of concurrent calls,
// and Stop before the router is stopped.
package formportal
