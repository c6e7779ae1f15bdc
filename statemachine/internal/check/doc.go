// Package check finds the faults that only a whole chart shows: unreachable nodes, transitions that are never taken, circles that nothing
// guards, events that look like slips. What may be meant is a warning. It looks at a compiled chart and the Notes that reading has left.
package check
