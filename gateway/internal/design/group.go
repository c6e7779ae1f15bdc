// Package design has the routes of definitions: which there are, how people see them and their instances,
// and their diagrams.
package design

import "troupe/gateway/internal/kernel"

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	// Definitions shows what was published. Nil: nothing, and the routes for it answer 404.
	Definitions Definitions
	// Presentations has how people see workflows and instances. Nil: nobody knows, and the routes for it answer 404.
	Presentations Presentations
	// Users says who there is. Nil: users have no names but their login names.
	Users kernel.Users

	Drawing chan struct{} // has an element for each picture that is being drawn
}

// New returns a group that has nothing yet.
func New() *Group { return &Group{Drawing: make(chan struct{}, DrawnAtOnce)} }
