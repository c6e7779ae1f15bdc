// Package schematest holds the JSON Schema of a text format against the reader of its files.
//
// A schema that refuses a right file is worse than none: an editor underlines what the service
// takes. So a schema may be looser than the reader, which sees more than a schema can, and never
// stricter. [Format.Takes] and [Format.IsNeverStricter] hold that, the second with files that
// were right before something in them was dropped, renamed, added or replaced. [HasKeys] and
// [HasWords] compare a schema with the tables of its reader, [Format.Sees] holds that it finds
// slips, and [Describes] that editors have something to show.
package schematest
