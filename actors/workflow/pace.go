package workflow

import (
	"context"
	"runtime"
	"time"
)

// pace keeps long work to its share of the machine, and ends it.
type pace struct {
	router  *Router
	ctx     context.Context // of the whole work
	resumed time.Time       // when it began, or last had a rest
}

// look ends the work when nobody waits for it any more, and lets events go
// first. It is called after some milliseconds of work at the latest.
func (p *pace) look() error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	worked := time.Since(p.resumed)
	if rest := p.router.restAfter(worked); rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}
	p.resumed = time.Now()
	return nil
}

// queryShare is how much of the machine all queries together may take while
// events keep it busy. It costs the events several times as much: with 0.1 a full
// scan took a third of them, with 0.02 a tenth (bench/results, "Beside events").
const queryShare = 0.02

// restAfter is how long a query rests after having worked for a while, so that
// queries keep to their share. While fewer calls are open than there are
// processors, nobody waits for a processor, and nobody rests.
func (r *Router) restAfter(worked time.Duration) time.Duration {
	processors := float64(runtime.GOMAXPROCS(0))
	if float64(r.inFlight.Load()) < processors {
		return 0
	}
	mine := queryShare * processors / float64(max(1, len(r.queries)))
	if mine >= 1 {
		return 0
	}
	return time.Duration(float64(min(worked, restWorkedMax)) * (1/mine - 1))
}

// restWorkedMax bounds what is taken for work: a query that was not let run for
// a while has not worked.
const restWorkedMax = 5 * time.Millisecond
