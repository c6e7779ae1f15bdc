// Package filter decides which instances a query matches.
//
// A filter is a JSON object in the match language of MongoDB's queries:
//
//	{"states.nodeId": "review", "svcPublic.amount": {"$gte": 1000}}
//
// Each key is a dotted path and each value is what must stand there, or an object of operators; all members must hold. Any other
// operator than those below is refused by name, because an ignored operator would return instances that should not match.
//
//	$eq $ne $gt $gte $lt $lte $in $nin     comparisons
//	$and $or $nor $not                     combinations
//	$exists $type $size $all $elemMatch    shape
//	$regex with $options i, m and s        RE2
//	$mod $bitsAllSet $bitsAllClear $bitsAnySet $bitsAnyClear
//	$comment                               beside paths, is skipped
//
// The text {"$oid": s} reads as the string s.
//
//	             ┌── IDs, Positions ─► which ids and nodes to read
//	filter text ─┤
//	  Parse      ├── Bounds(Field) ──► which keys of an index to read
//	             └── Match(Document) ► in the answer or not
//
//	instance ── Field.Keys ──► its keys in the index
//
// IDs, Positions and Bounds return supersets: Match still has to decide about each instance that they lead to.
//
// # Rules
//
// statemachine/filter/FILTER.md has the rules of the language, and the tests name the heading that they hold:
//
//   - "Paths": which values a path leads to, through objects and arrays.
//   - "Null and missing", "Comparisons", "Equality", "Negation": what the operators
//     ask of one value, and how the answers are put together.
//   - "Elements of arrays": $elemMatch and $all.
//   - "Numbers, types and bits": $mod, $type and the bit operators.
//   - "Combinations", "Regular expressions", "Object ids".
//   - "Limits": what keeps the time of a match linear in the instance.
//   - "Indexes", "What drives a plan": what [Field.Keys], [Filter.IDs],
//     [Filter.Positions] and [Filter.Bounds] promise.
//
// A Filter or Field is built once and then only read, so it may be shared. Match reads the stored bytes. It decodes a text only
// when it has escapes and a regular expression looks at it, and it allocates nothing except for those texts and very long ones. A
// caller that sets Document.Ended can end a long match.
package filter
