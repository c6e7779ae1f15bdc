// Package identity answers who sends a request and what that user may do at
// present.
//
// Roles and users are text: identity.yaml, read by ParseDirectory into a
// Directory that never changes. Tokens and sessions are credentials: random
// secrets that a Service hands out once and keeps as a SHA-256.
//
//	CreateToken ──► row appended ──► durable ──► in the table ──► secret returned
//	                                                 │
//	Authenticate ◄── one hash, one map read ─────────┤ last use kept in memory,
//	                                                 │ written about once a minute
//	Revoke ──► refused at once ──► row durable ──► acknowledged
//	                                                 │
//	      a while after its end, or when it is in the way: row removed
//
// People get their sessions by a password, which SetPassword keeps as argon2id:
//
//	SignIn ──► too many failures? ──► one of few places to hash ──► right? ──► a new session
//	              ErrQuota                   ErrBusy                ErrUnauthorized
//
// or by SignInVouched, when somebody else has recognised them; the session then
// can have roles of its own.
//
// What the caller does, in order: parse a directory, Start a service on the
// store, Authenticate every request, SetDirectory whenever the file changes,
// Stop before the store is closed.
//
// What it promises:
//
//   - Every reason to refuse a credential is the same failure.ErrUnauthorized, found by
//     the same work: an unknown id is compared against a dummy.
//   - A principal has the roles of the newest directory. A user who is disabled
//     or gone is refused from the next request on, and loses all sessions for
//     good; the user's tokens work again when the user comes back.
//   - Every reason to refuse a sign-in is the same error as well, after the same
//     work: an unknown user costs the hash of a password that nobody has.
//   - Sign-ins take a bounded memory and a bounded share of the cores, however
//     many come at a time. Guessing slows down by account and by address; no
//     account is ever locked for longer than minutes.
//   - When a new password is acknowledged, it is durable and no session of the
//     user from before works any more.
//   - A crash loses no credential whose secret was returned and brings none
//     back whose revocation was acknowledged. It can lose up to a minute of last
//     uses, so a session may end that much too early.
//     It forgets the failures of sign-ins.
//   - Nobody fills the table for others: a user has a bounded number of sessions,
//     of which the one used longest ago ends for a new one, and what has ended
//     gives way.
//   - Authenticate takes no lock and never waits for the store. All writes are
//     made by one goroutine, which Start starts and Stop ends.
//   - No secret and no password is in a stored byte, a log line or an error text.
//
// What it does not do: cookies and headers. It takes the text of a credential
// and does not care where it stood.
package identity
