// Package bench has the benchmarks of the layers, one file a layer: a step of a
// definition, the record's encoding, a commit, a filter, the router and a whole
// request. README.md says how to run and compare them, and has the ones that
// measure the program from outside: packages load, ceiling and compare.
//
// What is measured is always the same workflow and the same events, those of
// package load, so that the figures of the layers add up.
package bench
