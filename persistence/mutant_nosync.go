//go:build mut_nosync

package persistence

// ackBeforeSync builds the program with a bug on purpose: writes are
// acknowledged before they are durable. Harnesses that look for lost writes are
// run against this build and must find some.
const ackBeforeSync = true
