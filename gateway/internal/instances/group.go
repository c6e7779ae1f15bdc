// Package instances has the routes of group B about instances: create, event, batches, queries, history,
// changes and watches. A batch is many creates and events in one request, whose items may go to other nodes
// (package forward). It knows no credential and no limit: the kernel has done with them.
package instances

import "troupe/gateway/internal/forward"

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Workflows Workflows
	Forwarder *forward.Forwarder
	Shares    BatchShares
}
