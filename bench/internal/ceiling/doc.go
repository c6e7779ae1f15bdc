// Package ceiling has the two smallest servers of the workflow interface, as a
// measure for one that does everything.
//
// Both are net/http, httprouter and encoding/json: a request is decoded into a
// struct whose data stays raw JSON, and the answer is appended from bytes that are
// in memory. No rights, no definition, no merge, no check of what is sent.
//
//   - The HTTP ceiling stores nothing: a server with net/http and encoding/json
//     answers no more requests on this machine.
//   - The durable ceiling also commits one Pebble batch with a sync before it
//     answers: the record without its history, and one history entry under its own
//     key. Pebble makes one sync serve all commits that wait.
//
// The answers are as long as those of troupe but for a few bytes, with and without
// history. The history is kept encoded, so its length costs only the bytes of the
// answer.
package ceiling
