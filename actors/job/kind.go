package job

import (
	"errors"

	"troupe/actors/job/line"
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
