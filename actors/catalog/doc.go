// Package catalog has the definitions in use: which version new instances get, what every stored version means, and the
// indexes that definitions declare. A set of files is published as a whole or not at all; PublishDefinition adds single
// definitions of workflows that no file names. Content is replaced under a version, or a version retired, only when no
// instance has it. Readers take no lock, except a Pin of a version that is being published or retired. DESIGN.md says
// who decides what in a cluster. Everything is safe for concurrent use once Open has returned and AddBuiltin was
// called.
package catalog
