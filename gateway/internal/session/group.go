// Package session has the routes that sign people in and out: with a password, with a link, and through an
// identity provider, and the page for it.
package session

import "net"

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	// Sessions signs people in and out. Nil: nobody can sign in, and the routes for it answer 404.
	Sessions Sessions
	// Links signs people in who have a link. Nil: there are none.
	Links Links
	// Provider signs people in through an identity provider. Nil: there is none.
	Provider Provider
	// Addr is the address that the server listens on.
	Addr func() net.Addr
}
