// Package gateway is the HTTP side of the service: it turns a request into one typed call of the actors, and the answer
// into bytes. It knows no rule of a workflow.
//
//	request ─► path ─► in flight? ─► caller? ─► query, headers ─► body ─► handler
//	            │          │          │            │            │         │
//	           404        503        400          400          400   error → status
//	           405                   401          415          413   (errormapping.go in
//	                                 403                              internal/kernel)
//
// This package puts the parts together and has the life of the server. gateway/DESIGN.md, "Rooms", draws the packages
// below it; INTERFACE.md says what callers are promised.
//
//  1. New with Options opens nothing. Start opens the port: /livez answers 200, everything else 503.
//  2. Open with the Services, when they work. In a cluster, mount PeerHandler where only other nodes reach it.
//  3. Watch Failed: an error there means that the port is lost.
//  4. Stop before the services are stopped. It answers what was accepted, and ends the streams.
//
// All methods of a Server may be called concurrently. It starts two goroutines beside those of net/http; each stream, each
// batch of lines, each part of a batch at another node and each file that is packed has one of its own. Nothing is kept on
// disk: a crash loses answers only, and with an Idempotency-Key they can be asked for again. TLS, HTTP/2 and rate limits are
// a proxy's.
package gateway
