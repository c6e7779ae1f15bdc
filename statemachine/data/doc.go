// Package data keeps free-form JSON as the bytes it came in.
//
// A workflow's svcPublic, svcPrivate and event data are nobody's Go structs. They are stored, merged, looked into by a guard or a
// query, and sent back with their key order and their numbers untouched. Decoding them into maps would lose both and would cost
// more than everything else that an event needs. So a [Value] is text that was checked once, at the door, and is read in place:
//
//	bytes from outside ── Clean ──► Value ── Lookup, Members ──► Value (a part of it)
//	                                  │
//	                                  ├── Merge, Overlay, Set ──► Value (new bytes)
//	                                  └── Order, AppendOrdered ─► its place among others
//
// What the caller must do: let nothing become a Value that did not come out of this package. The reading functions do not check
// again. On other bytes they answer nonsense, but they neither panic nor loop forever.
//
// What the package promises:
//
//   - A Value is never modified, so it may be shared between goroutines and kept
//     for as long as anybody likes. Functions that return a part of a Value
//     return a slice of the same bytes.
//   - Every function takes time linear in its input, whatever the input is, and
//     recurses no deeper than [MaxDepth].
//   - Numbers are compared by their exact value, of any size, and are written
//     back as they were spelled.
//
// What it does not do: it knows no schema, no query language and no expression language, and it does not repair what is broken.
package data
