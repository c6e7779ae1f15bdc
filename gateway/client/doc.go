// Package client asks a running service over HTTP: create instances, send them
// events, look at them, list them, watch them.
//
//	c, err := client.New(client.Options{Address: "http://127.0.0.1:8080", Token: token})
//	made, err := c.Create(ctx, client.CreateRequest{WorkflowID: "leave-request"})
//	for entry, err := range c.Watch(ctx, client.WatchRequest{WorkflowID: "leave-request"}) { … }
//
// # How to import it
//
// The name of the module is no address, so go get does not find it. Name a clone of it
// in your go.mod, and run go mod tidy:
//
//	require troupe v0.0.0
//	replace troupe => ./path/to/clone
//
// # What the caller must do
//
//  1. New with Options, once for a service. A Client may be used by any number
//     of goroutines and keeps connections open between calls.
//  2. Give every call a context. It bounds the call with all its repetitions.
//  3. Close, when the client is not needed any more.
//
// # What it promises
//
// A call repeats a request only where that is safe:
//
//	answer                                   Create, Send   others
//	429, 503 with Retry-After (not applied)  again          again
//	502, 503 without it, 504                 again          -
//	broken connection, nobody there          again          -
//	everything else                          -              -
//
// Create and Send are safe because each carries an idempotency key: one that is
// drawn at random, unless the caller has its own. When they fail and it is open
// whether the service has done it, the error wraps an UnknownError, which names the
// key with which it can be asked again. Batch is as Create and Send are.
//
// What the service refuses is an *Error. Free-form data and records keep the
// service's bytes. Every answer is bounded (Options.BodyBytesMax), read to its
// end, and a redirect is never followed, so a token goes nowhere else.
//
// Watch goes on by itself where a connection ended, and says when entries are
// missing. Nothing runs outside the calls: the package starts no goroutine of
// its own that outlives one.
//
// # What it does not do
//
// It makes no sessions or tokens, caches nothing, and does not spread calls over
// several services.
package client
