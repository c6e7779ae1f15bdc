// Package portal has the routes of group A and of the form runtime: lists of forms, templates, drafts,
// submissions, and the forms of tasks.
package portal

import (
	"context"

	"troupe/actors/identity"
	"troupe/actors/presentation"
	"troupe/actors/query"
	"troupe/gateway/internal/kernel"
	"troupe/statemachine"
)

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Portal Portal
	// Presentations has how people see instances. Nil: nobody knows.
	Presentations Presentations
	// Users says who there is. Nil: users have no names but their login names.
	Users kernel.Users
}

// Presentations has how people see instances. Errors are those of package failure.
type Presentations interface {
	// Lines returns some instances as people see them in a list; nil for those that the caller may not read.
	Lines(ctx context.Context, caller *identity.Principal, of []presentation.Name) ([]*presentation.Line, error)
	// Called returns what one of them is called; no text for those.
	Called(from *query.Reader, caller *identity.Principal, of presentation.Name) (statemachine.Text, error)
}
