// Package filter compiles and matches filters over instances in MongoDB's query language (statemachine/filter/FILTER.md has its rules; tests name the
// heading that they hold). Parse gives a Filter, which may be shared: Match decides about the stored bytes without decoding them.
//
// IDs, Positions and Bounds say what to read, and return supersets: Match still decides about each instance. Field.Keys are an instance's
// keys in an index. A caller that sets Document.Ended can end a long match.
package filter
