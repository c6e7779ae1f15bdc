// Package gateway is the HTTP side of the service: it turns a request into one
// typed call of the actors, and the answer into bytes. It knows no rule of a
// workflow.
//
//	request ─► path ─► in flight? ─► caller? ─► query, headers ─► body ─► handler
//	            │          │          │            │            │         │
//	           404        503        400          400          400   errormapping.go
//	           405                   401          415          413    error → status
//	                                 403
//
// This package puts the parts together and has the life of the server. internal/kernel has what all routes have in
// common; a package of internal for each group of routes has their rows and handlers: instances, tasks, portal, operate,
// design, session, files and pages. gateway/DESIGN.md, "Rooms", draws them.
//
// What a path takes, and from whom, is a row of the table, which routes.go collects. A row
// that does not say who may use it is an error of New. Answers are JSON, and
// errors are {error, message}. The exceptions: pages and what belongs to them
// (packages login, console, errorpage and reference), the interface's description in
// YAML, streams of events, and the id of a new form, which is plain text. Only the way to an identity provider and back redirects (package
// provider).
//
// # What the caller must do
//
//  1. New with Options. It opens nothing.
//  2. Start. The port is open; /livez answers 200, everything else waits with
//     503 until the next step.
//  3. Open with the Services, when they work.
//     In a cluster, mount PeerHandler where only other nodes reach it.
//  4. Watch Failed: an error there means that the port is lost.
//  5. Stop before the services are stopped. It answers what was accepted, and
//     ends the streams of those who watch.
//
// # What it promises
//
// A request acts only after its credential, its headers and its whole body, or its line in
// a stream of them, were found to be good. Who is refused with 401, 404, 429 or 503 has changed
// nothing, and every cause of a 401 has the same bytes. A list that is broken
// off never looks whole: the connection is reset. A page says whether there is
// another one in its body and in its header Link.
//
// People sign in with POST /session, from the page at /login or with any client.
// The session they get is always a new one, in a cookie that no script can read
// and no other host gets; what the browser had before ends. Where a request
// comes from, and whether it came by TLS, a proxy says only when its address is
// in Options.TrustedProxies.
//
// A watcher is told each event at once, as long as it reads and its credential
// is good. It is not a request in flight: watchers have a limit of their own, and
// Stop does not wait for them.
//
// A panic of a handler is a 500 for its caller and touches no other request.
// In a cluster any node takes any request: what another node leads, that node carries out
// (internal/forward; gateway/DESIGN.md, "Forwarding").
//
// The package keeps nothing on disk, so a crash loses only answers; with an
// Idempotency-Key they can be asked for again.
//
// All methods of a Server may be called concurrently. It starts one goroutine
// (serving) beside those of net/http, one for each connection; Stop ends them
// all. Nothing is started, and no timer is set, for a request, with two exceptions: a batch has a ticker,
// and a goroutine that reads lines while others are carried out; a request that another node
// carries out has timers. A watcher holds the
// goroutine of its connection.
//
// # What it does not do
//
// TLS, HTTP/2 and rates of callers: a proxy in front has them. What
// net/http refuses before a request exists (400, 417, 431, 501 and 505 for
// broken syntax) has no JSON body.
package gateway
