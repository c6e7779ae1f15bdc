// Package tasks has the routes of worklists: tasks, comments and the activity beside histories.
package tasks

import "troupe/gateway/internal/kernel"

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Workflows Tasks
	// Users says who there is. Nil: users have no names but their login names.
	Users kernel.Users
}
