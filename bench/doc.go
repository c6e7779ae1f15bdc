// Package bench has the benchmarks of the layers, one file a layer: a step of a
// definition, the record's encoding, a commit, a filter, the router and a whole
// request. How to run and compare them is in bench/README.md,
// "The layers, inside one process"; the packages below measure the
// program from outside:
//
//   - load is the generator, trial what `troupe bench` does with it, and report writes its
//     JSON and its page
//   - compare sets the program beside ceiling, which is as little as can be, and beside peers,
//     which is a module of its own with Restate, DBOS and Temporal
//   - overload offers more than the program can do, fairness has one user attack it while
//     another works, and million is about a store of a million instances
//   - process, fleet, service and record start servers and clusters, open stores, and say where it was measured
//
// What is measured is always the same workflow and the same events, those of
// package load, so that the figures of the layers add up.
package bench
