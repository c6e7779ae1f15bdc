// Package filter decides which instances a query wants.
//
// A filter is a JSON object in the match language of MongoDB's queries:
//
//	{"states.nodeId": "review", "svcPublic.amount": {"$gte": 1000}}
//
// Each key is a dotted path and each value what stands there, or operators that
// say more; all of them must hold. An operator that is not one of those below is
// refused by name: one that were ignored would return instances that should not
// match.
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
// What IDs, Positions and Bounds return are supersets: an instance that they
// lead to still has to be asked with Match.
//
// # Rules
//
// The tests name the rule that they hold.
//
//  1. A path goes down through objects by key. What is not there, or would be
//     inside of a scalar, is missing. An array at the end is tried element by
//     element, then as a whole; $exists, $size and $elemMatch look at the whole
//     only. In an array in the middle each element that is an object is searched
//     for the rest of the path. When the next segment is a position, the element
//     there is taken as well: at the end of the path as it is, before it only
//     when it is an object or array. Other elements give nothing, not even
//     missing.
//  2. $eq, $gte, $lte and $in with null match null and missing; $gt and $lt with
//     null match nothing.
//  3. Comparisons stay within numbers, strings, objects, arrays and bools. The
//     order is [data.Order].
//  4. Equal are numbers of the same value, strings of the same text, objects with
//     equal members in the same order, arrays with equal elements in the same
//     order. An array operand matches the whole array or an element equal to it.
//  5. $ne, $nin, $not and $nor negate the whole result of a path: $ne matches
//     when no element is equal. $not takes operators.
//  6. $elemMatch wants one element for which everything in it holds. When its
//     first key is an operator other than $and, $or and $nor, that is asked of
//     the element itself; otherwise of the element as a document, which objects
//     are, and arrays with their positions as keys. $all wants every value, or
//     every $elemMatch, and does not mix them; $all: [] matches nothing.
//  7. $size takes an integral number. $mod truncates its operands and the stored
//     number. $type takes MongoDB's names and codes, number, or a list; JSON's
//     integers are int or long by their size, what is spelled with a fraction or
//     an exponent is double. Bits are those of integral numbers of 64 bits, the
//     sign goes on above.
//  8. $and, $or and $nor take an array of objects that is not empty.
//  9. A filter has limits: 16 KiB, 20 levels, 64 conditions in the whole tree
//     (each value of $all is one), 1 KiB for a regular expression. A path has 20
//     segments, of which 4 may be positions, those of the $elemMatch around it
//     included. Regular expressions together have 1,100 steps, repetitions
//     multiplied. Duplicate keys and trailing data are refused.
//
// A Filter or Field is built once and then only read, so it may be shared. Match
// reads the stored bytes and decodes nothing but texts with escapes that a
// regular expression looks at. It allocates nothing, those texts and very long
// ones aside. Who sets Document.Ended can end a match that takes long.
package filter
