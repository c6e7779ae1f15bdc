// Package api is the JSON of the interface as a caller reads and writes it, each body
// as a Go struct: those of workflow/api/v1, and the answers of the form portal and the
// form runtime.
//
//	caller ── CreateRequest, EventRequest ──► service
//	caller ◄── InstanceReply, InstanceList, EventList, HistoryList, Watched ── service
//	caller ◄── RoleInfo, TemplateSummary, Form, FormView, Draft, TemplatePage ── service
//
// What is free-form (svcPublic, svcPrivate, schemas) and what a caller may want
// byte for byte (records, entries) is json.RawMessage: numbers keep their
// spelling and members their order. Members that a newer service adds are
// ignored.
//
// The package has no functions and imports nothing of this module, so that a
// client carries nothing of the server.
package api
