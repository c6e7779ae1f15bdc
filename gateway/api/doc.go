// Package api is the JSON of group B as a caller reads and writes it: the bodies
// of workflow/api/v1, each as a Go struct.
//
//	caller ── CreateRequest, EventRequest ──► service
//	caller ◄── InstanceReply, InstanceList, EventList, HistoryList, Watched ── service
//
// What is free-form (svcPublic, svcPrivate, schemas) and what a caller may want
// byte for byte (records, entries) is json.RawMessage: numbers keep their
// spelling and members their order. Members that a newer service adds are
// passed over.
//
// The package has no functions and imports nothing of this module, so that a
// client carries nothing of the server.
package api
