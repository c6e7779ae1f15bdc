// Package ceiling has two servers that do as little as a server of the workflow
// interface could do, as a measure for one that does everything.
//
// Both are net/http, httprouter and encoding/json as most people would write
// them: a request is decoded into structs, an event is merged into the maps of a
// record in memory, and the record is encoded for the answer. No rights, no
// definition, no checks.
//
//   - The HTTP ceiling stores nothing: more requests than it answers cannot come
//     through net/http and reflection on this machine.
//   - The durable ceiling also encodes the whole record and commits it to Pebble
//     with a sync before it answers. Pebble makes one sync serve all commits that
//     wait, so this is what a simple durable service reaches.
//
// A record keeps only its newest history entry. With a whole history both would
// get slower with each event, and be easy to beat.
package ceiling
