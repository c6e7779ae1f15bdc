// Package login is the page on which a person signs in: an HTML document, its
// style and its script. They ask for nothing from another server.
//
//	GET /login?next=/x ──► Page: the form, and where to go after it (Destination)
//	                          │ its script sends POST /session
//	                          │  └─ 200: the browser goes on to next
//	                          └─ or a link to GET /login/oidc, with a provider
//
// What the page is told comes from the server, already checked: the script
// decides nothing about addresses. Policy is the Content-Security-Policy under
// which the page works; it lets nothing run that stands in the page itself,
// nothing be loaded from elsewhere, and nobody frame it.
//
// The package is pure and keeps nothing. It does not know who may sign in.
package login
