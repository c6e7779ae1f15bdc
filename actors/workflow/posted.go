package workflow

import (
	"troupe/actors/instance"
	"troupe/actors/shard"
)

// Posted is a request on its way to its instance.
type Posted struct {
	call   *instance.Call // nil: the answer comes in any case
	router *Router
	round  int64 // of the sweep, when it was posted
}

func (r *Router) posted(c *instance.Call) Posted { return Posted{c, r, r.shards.Round()} }

// GiveUp says what a request has come to that was not answered in time: failure.ErrBusy
// when it will never be applied, else failure.ErrOutcomeUnknown, and then an answer may still
// come; nil while there is time.
func (p Posted) GiveUp() error {
	if p.call == nil || p.router.shards.Round()-p.round <= int64(p.router.o.ReplyWaitMax/shard.SweepEvery) {
		return nil
	}
	return p.call.GiveUp()
}
