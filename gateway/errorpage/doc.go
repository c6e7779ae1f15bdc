// Package errorpage is the page that says why there is no other page: nothing is there,
// the person may not see it, something went wrong, or the service takes nothing now.
// It looks like the page of package login.
//
// The page asks for nothing but an icon. Its style stands in it, and Policy names the
// style by its hash, so that the page is whole also while the server starts, stops or is
// full. There is no script in it, and none of the request's text.
//
// The package is pure and keeps nothing.
package errorpage
