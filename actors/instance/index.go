package instance

import (
	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/statemachine/filter"
)

// EnterIndex is the request of EnterIndex. It needs no definition, which may be
// unreadable.
type EnterIndex struct{ Index *catalog.Index }

func (m EnterIndex) run(i *Actor, c *Call) (err error) {
	stored := &filter.Document{Public: i.state.Public, Private: i.state.Private}
	if !i.loaded {
		if _, err = i.rows(); err != nil {
			return err
		}
		if stored, err = i.env.storedDocument(i.shard, i.workflowID, i.id); err != nil {
			return failure.OfStore(err)
		}
	}
	c.commit = i.env.Catalog.BeginCommit(i.shard)
	if stored == nil || !i.env.Catalog.Maintains(i.workflowID, m.Index) {
		c.endCommit()
		i.deliver(c, &message.Reply{})
		return nil
	}
	w := i.writes()
	i.scratch = m.Index.Enter(w, i.scratch, i.shard, i.id, *stored)
	i.handOver(w, c, &message.Reply{})
	return nil
}
