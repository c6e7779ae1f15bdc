// Package machine says where a measurement was made: processor, system, the cost
// of a synced write, how busy it was, and which commit was measured. Every record
// in bench/results begins with it, because a figure without it says nothing.
package machine
