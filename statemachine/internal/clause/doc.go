// Package clause reads the parts of a definition that know neither states nor actions: expressions, values and texts,
// schemas, rules, delays, event declarations, webhooks and schedules. Its Reader collects every fault on the way, and
// counts what the file takes to compile.
//
// Package parse reads the rest with it.
package clause
