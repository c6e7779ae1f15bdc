// Package provider signs people in through an OpenID Connect provider, as its
// relying party: the authorization code flow with PKCE.
//
//	GET /login/oidc ──► Begin: where to send the browser, and a sealed cookie
//	                       │ state, nonce and PKCE verifier are in the cookie only
//	  the provider asks the person
//	                       │
//	GET /login/oidc/callback ──► Finish: cookie and state fit ─► code for tokens
//	                       ─► signature, issuer, audience, times, nonce ─► Person
//
// A Person is what the provider says: a login name and roles, by the claims that
// the Options name. Whether there is such a user is not looked at here.
//
// # What the caller must do
//
// New once, with checked Options. Hand the cookie of Begin to the browser,
// HttpOnly and for ten minutes, and what comes back to Finish; take it from the
// browser whatever Finish says.
//
// # What it promises
//
// A sign-in ends in the browser in which it was begun, within ten minutes, or not
// at all. The cookie is sealed with a key of this process, so nobody can make or
// read one; a restart ends the sign-ins that are on their way. Nodes of a cluster share the key
// instead (Options.Key), so a sign-in may end on another node. Nothing else is
// kept, so any number of sign-ins that are begun cost no memory; at most 16 at a
// time ask the provider, more are answered with ErrBusy.
//
// The provider is asked for its addresses at the first sign-in, not before: it
// may start after this program, and nothing else depends on it. An answer of the
// provider is read up to a megabyte and waited for up to ten seconds; redirects
// are not followed. No secret, code or token is in an error or in the log.
//
// All methods of a Client may be called concurrently. It starts no goroutine of
// its own.
package provider
