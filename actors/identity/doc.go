// Package identity answers who sends a request and what that user may do at present.
//
// Roles and users are text: identity.yaml, read by ParseDirectory into a Directory that never changes. Tokens and
// sessions are credentials: random secrets that a Service hands out once and keeps as a SHA-256.
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
// An identity provider can recognise a person instead: SignInVouched makes a session that can have roles of its own.
//
// What the caller does, in order: parse a directory, Start a service on the store, Authenticate every request,
// SetDirectory whenever the file changes, Stop before the store is closed.
//
// In a cluster each node has a [Replicated] instead, with the same methods. The node that leads the shard key.Meta runs
// a Service for its epoch; the others read rows:
//
//	Create, SignIn, … ──► leads? ── no ──► ErrElsewhere: the gateway asks the leader
//	                        └─ yes ──────► the Service of the epoch
//	Authenticate ───────► leads? ── yes ─► the Service of the epoch
//	                        └─ no ───────► the row in the local store ── none ──► Current, once more
//
// What it promises:
//
//   - Every reason to refuse a credential is the same failure.ErrUnauthorized. A well-formed one costs the same work:
//     an unknown id is compared against a dummy.
//   - A principal has the roles of the newest directory. A user who is disabled or gone is refused from the next
//     request on, and loses all sessions for good; the user's tokens work again when the user comes back.
//   - Every reason to refuse a sign-in is the same error as well, after the same work: an unknown user costs the hash
//     of a password that nobody has.
//   - Sign-ins take a bounded memory and a bounded share of the cores, however many come at a time. Guessing slows down
//     by account and by address; no account is ever locked for longer than minutes.
//   - When a new password is acknowledged, it is durable and no session of the user from before works any more.
//   - A crash loses no credential whose secret was returned and brings none back whose revocation was acknowledged. A
//     revocation that the store does not take is written again until it does. A crash can lose the last uses of a
//     minute, so a session may end a minute early, and it loses the count of failed sign-ins.
//   - No user fills the table for others: the sessions of a user are bounded, and a new one ends the one that was used
//     longest ago. Ended credentials give way to new ones.
//   - A Service's Authenticate takes no lock and never waits for the store. All writes are made by one goroutine, which
//     Start starts and Stop ends.
//   - In a cluster a credential works on every node as soon as it is acknowledged, and an end holds on every node as
//     soon as its row is there. A node that may not know answers ErrUnavailable, never ErrUnauthorized.
//   - No secret and no password is in a stored byte, a log line or an error text. In a cluster the key that seals
//     sign-ins on their way is a row.
//
// It knows nothing of cookies and headers: it takes the text of a credential.
package identity
