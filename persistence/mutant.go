package persistence

// mutant is empty in every program that serves. A program that is linked with
//
//	-ldflags "-X troupe/persistence.mutant=nosync"
//
// has a bug on purpose: it acknowledges writes before they are durable. Harnesses that
// look for lost writes are run against it and must find some.
var mutant string

// ackBeforeSync says whether this program has that bug.
var ackBeforeSync = mutant == "nosync"
