// Package operate has the routes of those who run the service: what happens by itself, migrations, homes
// and health.
package operate

import "troupe/gateway/api"

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Workflows Operations
	// Migrations gives running instances other versions. Nil: nothing does, and the route for it answers 404.
	Migrations Migrations
	// Homes publishes homes. Nil: the node stands alone, and the route for it answers 409.
	Homes Homes
	// Cluster is the cluster as this node knows it. Nil: the node stands alone.
	Cluster func() any
	// Vitals is what the node holds and has done. Nil: nobody counts.
	Vitals func() api.Vitals
	// Parts are asked by /readyz.
	Parts []Part

	vitals vitalsReading
}
