package fairness

import (
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
)

type measurement struct {
	*harness.Harness
	attacks     []attack
	duration    time.Duration // of the measured window of each attack
	warmUp      time.Duration // before it, already under attack
	rate        float64       // of the polite user's requests
	loops       int           // hostile requests at a time
	connections int           // hostile connections that are only held
	records     int           // hostile instances that are there before
	tasks       int           // hostile tasks, and events of a long history
	serve       []string      // arguments of troupe serve
}

// home is a server with a home of its own, its users and what they have in it. It does not run between attacks.
type home struct {
	*harness.Server
	polite, hostile credentials
	politeIDs       []string
	hostileIDs      []string
	hot             string
}

type credentials struct{ token, cookie string }

// phase is one attack and what became of the polite user meanwhile.
type phase struct {
	Attack string
	What   string
	// Kinds are the polite user's requests.
	Kinds map[string]*harness.Outcome
	// All are those of all kinds but sign-in, which costs a password's hash whoever is there.
	All load.Summary
	// Hostile counts what the hostile one was answered.
	Hostile map[string]int64
	// Recovered is how long after the attack the polite user waited until a new
	// connection and an event were answered again.
	Recovered load.Duration
	// Cores is the server's processor time for each second, and PeakBytes the most memory that it had.
	Cores     float64
	PeakBytes int64
	// Died says how the server ended before it was told to; empty: it did not.
	Died string
}
