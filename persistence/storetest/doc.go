// Package storetest holds what every journal must pass: a conformance suite, a
// crash harness and a sweep of damaged files. A journal is what commits writes
// for the rest of the program; the store on one node is the first, a replicated
// one comes later.
//
//   - [Run] is the conformance suite: atomicity, order, durability, exactly one
//     answer. It takes seconds and belongs in the tests of every journal.
//   - [Crash] cuts the power at every n-th write to the file system and looks at
//     what a restart finds.
//   - [Sweep] damages every file of a store in every way and counts what is
//     refused, harmless and silent.
//
// A harness that cannot fail proves nothing. So each of them returns what it
// found instead of failing a test, and is run against journals with a bug in
// them ([EarlyAck], [SplitBatch]) that it must catch.
package storetest
