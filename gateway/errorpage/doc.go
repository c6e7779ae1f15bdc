// Package errorpage is the HTML page for an error: not found, no access, an internal
// error, or a service that takes no requests now. It looks like the login page.
//
// The page loads only an icon. Its style is inline, and Policy names the style by its
// hash, so that the page is complete also while the server starts, stops or is
// overloaded. It has no script and no text of the request.
//
// The package is pure and keeps nothing.
package errorpage
