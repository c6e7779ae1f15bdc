// Package client asks a running service over HTTP: create instances, send them events, read, list and watch them.
//
//	c, err := client.New(client.Options{Address: "http://127.0.0.1:8080", Token: token})
//	made, err := c.Create(ctx, client.CreateRequest{WorkflowID: "leave-request"})
//	for entry, err := range c.Watch(ctx, client.WatchRequest{WorkflowID: "leave-request"}) { … }
//
// The name of the module is not an address, so go get does not find it. Name a clone of it in your go.mod, and run go
// mod tidy:
//
//	require troupe v0.0.0
//	replace troupe => ./path/to/clone
//
// Make one Client for a service; any number of goroutines may use it. The context of a call bounds it with all its
// repetitions. A call repeats a request only where that is safe:
//
//	answer                                   Create, Send   others
//	429, 503 with Retry-After (not applied)  again          again
//	502, 503 without it, 504                 again          -
//	broken connection, nobody there          again          -
//	everything else                          -              -
//
// Create, Send and Batch are safe because each carries an idempotency key: a random one, unless the caller has its own.
// When one fails and the outcome is unknown, the error wraps an UnknownError with the key to ask again with. What the
// service refuses is an *Error. Free-form data and records keep the service's bytes. Every answer is bounded
// (Options.BodyBytesMax), and a redirect is never followed, so a token goes nowhere else. Watch reconnects by itself,
// and says when entries are missing. No goroutine outlives a call.
package client
