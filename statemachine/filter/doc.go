// Package filter decides which instances a query wants.
//
// A filter is a JSON object in the match language of MongoDB's queries:
//
//	{"states.nodeId": "review", "svcPublic.lines.sku": "A-17"}
//
// Each key is a dotted path and each value what stands there; all of them must
// hold. So far a value is compared for equality. Operators, which begin with $,
// are refused by name: one that were ignored would return instances that should
// not match. The text {"$oid": s} reads as the string s.
//
//	filter text ── Parse ──► Filter ──┬── Nodes ──► which index entries to read
//	                                  └── Match(Document) ──► in the answer or not
//
// How a path is followed:
//
//   - Down through objects by key. What is not there, or would be inside of a
//     scalar, is missing; null equals null and missing.
//   - An array at the end of the path matches when one of its elements does, or
//     the whole array.
//   - An array in the middle matches when one of its elements does: an object is
//     searched for the rest of the path. When the next segment is a position, the
//     element there is taken as well: at the end of the path as it is, before it
//     only when it is an object or array. Other elements give nothing, not even
//     missing.
//
// Equal are numbers of the same value, strings of the same text, objects with
// equal members in the same order, arrays with equal elements in the same order.
// Values of different kinds are never equal.
//
// A Filter is built once and then only read, so it may be shared. Match reads the
// stored bytes, decodes nothing and allocates nothing.
package filter
