// Package identity answers who sends a request and what that user may do at present. Roles and users are text:
// identity.yaml, read by ParseDirectory into a Directory that never changes. Tokens and sessions are random secrets
// that a Service hands out once and keeps as a SHA-256; passwords are kept as argon2id. Parse a directory, Start a
// service on the store, Authenticate every request, SetDirectory when the file changes, Stop before the store is
// closed. In a cluster each node has a [Replicated]: the node that leads the shard key.Meta runs a Service for its
// epoch, the others read rows. DESIGN.md, "Promises", says what callers can rely on.
//
// It knows nothing of cookies and headers: it takes the text of a credential. No secret and no password is in a stored
// byte, a log line or an error text.
package identity
