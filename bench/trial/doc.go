// Package trial carries out what `troupe bench` is asked for: servers on temporary homes, or addresses; a trial event
// each; then for each rate and round the load on each target in turn; and a report.Report. Homes are removed when it ends,
// also after an interrupt. Every round begins with another target, and ratios are taken within a round, so that what slows
// the machine slows both sides.
package trial
