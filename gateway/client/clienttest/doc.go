// Package clienttest is a service for the tests of its callers: group B over
// HTTP as the interface has it, with instances in memory and faults on demand.
//
//	s := clienttest.Start(t)
//	s.Add("leave", `{"days":5}`, "review")
//	s.Fail("create", clienttest.Fault{Status: 503, RetryAfter: "1"})
//	… ask s.URL with s.Token …
//	s.Requests()
//
// It knows one workflow, Workflow, whose only machine "main" goes to the node
// approved with the event approve. It decides nothing else that a real service
// does: there is one user, and of filters it knows {"states.nodeId": …} alone.
// What it is strict about is the wire: parameters, headers, cursors, places in
// a stream. Nobody gives the address of a service that is not there.
package clienttest
