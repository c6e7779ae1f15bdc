package job

import (
	"encoding/json"
	"errors"
	"time"

	"troupe/actors/job/line"
	"troupe/persistence/key"
)

// kind is what is known of the jobs of a type in the shards that are led here.
type kind struct {
	lines   line.Lines
	shares  map[string]*share // by workflow
	waiters map[*waiter]struct{}
	workers map[string]int64 // when they asked last, in Unix milliseconds
}

// share is what a workflow gets of the jobs of a type.
type share struct {
	served  uint64 // when it was its turn last, as a number
	running int    // leases
	// isBounded: the workflow bounds running, so that one waits for the end of another.
	isBounded bool
}

func newKind() *kind {
	return &kind{lines: line.Lines{}, shares: map[string]*share{}, waiters: map[*waiter]struct{}{}, workers: map[string]int64{}}
}

func (k *kind) shareOf(workflow string) *share {
	of := k.shares[workflow]
	if of == nil {
		of = &share{}
		k.shares[workflow] = of
	}
	return of
}

var errEnough = errors.New("enough")

// limitedEnd is what a node says that has counted the leases of a type.
type limitedEnd struct {
	Again time.Duration // until there may be more; 0: that is not known
	// Lacks: some nodes did not say what they have, and the others have nothing.
	Lacks bool
}

// runs is how many leases of a type and workflow a node has.
type runs struct {
	Type, Workflow string
	Count          int
}

// count is what nodes said of the leases of a type, and what was given since. Who has its turn has the rest.
type count struct {
	turn chan struct{} // has an entry while somebody takes jobs
	at   time.Time
	of   map[string]int // by workflow
}

// node is one that leads shards.
type node struct {
	name  string    // "": this one
	leads key.Shard // one of them
}

// changed is what an item has come to.
type changed struct {
	At    int
	Error json.RawMessage `json:",omitempty"` // as fanout.ErrorText has it; nil: it is done
}

// typeOf is a type of jobs in a workflow, whose definition may limit it.
type typeOf struct{ typ, workflow string }

// limit holds the jobs of a type and workflow to what its definition says, over all nodes.
type limit struct {
	tokens float64 // of perSecond, which one second's worth fills
	at     time.Time
	held   int // that are promised, and not given yet
}

// refill brings the tokens up to a time.
func (l *limit) refill(perSecond float64, now time.Time) {
	most := max(perSecond, 1)
	if l.at.IsZero() {
		l.tokens, l.at = most, now
	}
	if passed := now.Sub(l.at).Seconds(); passed > 0 {
		l.tokens, l.at = min(l.tokens+passed*perSecond, most), now
	}
}
