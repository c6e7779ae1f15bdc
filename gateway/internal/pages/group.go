// Package pages has the pages of the console and their files, the page of an error, and the description of
// the interface. None of them says anything about anybody.
package pages

import (
	"troupe/gateway/console"
	"troupe/gateway/internal/kernel"
)

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	description *Description
	shells      map[console.Page]*kernel.StaticFile
}

// New returns the pages of a server whose paths begin with basePath.
func New(basePath string, d *Description) *Group {
	return &Group{description: d, shells: newShells(basePath)}
}
