// Package script has the tests that authors write for their workflows: files of steps and expectations, which run in the simulated world
// of package simulation (cmd/troupe/TESTS.md).
//
//	tests/*.yaml ── Parse ──► File ── Run ──► Result: passed, or where and how it differs
//
// A test knows no clock, no network and no store, and two tests share nothing: any number may run beside each other, and a test has the
// same result each time.
package script
