// Package load sends requests to a server of the workflow interface and measures how long the answers take.
//
//	connect ─► prepare: create the instances ─► warm-up ─► measured window ─► Result
//
// A closed loop (Options.Rate zero) keeps every connection busy: the next request leaves when the last one is answered.
// It finds out what a server can do, and hides how long callers would wait who do not wait for each other. An open loop
// sends at a rate, whatever the server does. Its latencies count from the moment when a request should have left, also
// when no connection was free then; what could not be sent at all is Result.Missed. Nothing is left out of the figures
// because it was slow. What the server does in the window is counted by when its answers came, also of requests that
// had waited since the warm-up; so a rate that is too high shows what the server can do, and Missed what it could not.
//
// What is sent is a Scenario: a walk of each instance from node to node, by steps that are picked by their weights,
// with data from templates. A server that is gone is waited for: attempts to connect become errors, Result.Gap says how
// long nobody had a right answer, and Result.Series shows the window in intervals. With Options.Batch many events go
// into one request; each counts as an operation.
//
// Every answer is checked: its status, that it is about the instance that was asked for, and, where only one connection
// uses an instance, that the instance is where the event must have brought it. What fails the check is an error in the
// result and in no latency.
//
// The generator shares the processors with what it measures. So it speaks HTTP/1.1 itself, over one connection for each
// goroutine: a request is one write, an answer usually one read, and neither allocates. Counting a request takes 25 ns
// (BenchmarkRecord), intervals included. Over TLS, crypto/tls does the rest.
package load
