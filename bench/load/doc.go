// Package load sends requests to a server of the workflow interface and measures how long the answers take.
//
//	connect ─► prepare: create the instances ─► warm-up ─► measured window ─► Result
//
// A closed loop (Options.Rate zero) keeps every connection busy. An open loop sends at a rate, whatever the server does:
// latencies count from when a request was due, and what could not be sent at all is Result.Missed. What the server does in
// the window is counted by when its answers came, so a rate that is too high shows what it can do. Every answer is checked:
// its status, that it is about the instance, and, where one connection alone uses it, that it is where the event must have
// brought it. A server that is gone is waited for; Result.LongestGapSeconds says for how long. bench/DESIGN.md has the reasons.
package load
