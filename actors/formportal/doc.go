// Package formportal is the form portal, group A of the interface, and the form runtime in which people fill in forms
// (gateway/INTERFACE.md, "Groups").
//
//	request ──► Portal ──► supervisor actor ──► worker actor, one for each request
//	                                               │
//	                       Templates ◄─────────────┤ what can be made, by whom
//	                       workflow.Router ◄───────┘ instances, lists, drafts
//
// A form is a workflow instance with a record beside it (package form). One that is bound to no workflow is an instance
// of a built-in one, PlainWorkflow, so it has a history, a durable life and idempotency keys like any other.
//
// The form of a task (task.go) is filled in the same way, and sends an event of the task to its instance.
//
//	draft ──saved any number of times──► submitted ──► completed ──ArchiveAfter──► archived
//
// # Templates
//
// Forms and checklists are made from templates:
//
//	forms/*.yaml, checklists/*.yaml ──ParseTemplate──► Template
//	                                                      │ Templates.Publish
//	                                                      ▼
//	                            accepted set: in memory, and in the store
//
// # What is promised
//
// What a caller may not see is ErrNotFound, in the same words as what is not there. A list shows one moment with
// everything that was acknowledged before it, wakes no instance, costs what it shows and is read in little memory:
// besides some rows, the keys of those forms that were completed late. A panic in one request is answered with
// ErrInternal and touches no other. Nothing is kept outside the store: after a crash lists, drafts and templates are as
// they were acknowledged.
//
// # What the caller must do
//
// AddPlainWorkflow before the catalog is used, then Start, any number of concurrent calls, and Stop before the router
// is stopped.
package formportal
