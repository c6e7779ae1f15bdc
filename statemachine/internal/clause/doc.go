// Package clause reads the parts of a definition that know neither states nor actions: expressions, values and texts, schemas, rules, delays,
// event declarations, webhooks and schedules. Its Reader collects every fault, and counts what the file takes to compile.
package clause
