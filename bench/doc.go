// Package bench has the benchmarks of the layers, one file a layer: a step of a
// definition, the record's encoding, a commit, a filter, the router and a whole
// request. How to run and compare them is in bench/README.md,
// "The layers, inside one process"; packages load, ceiling and compare measure the
// program from outside.
//
// What is measured is always the same workflow and the same events, those of
// package load, so that the figures of the layers add up.
package bench
