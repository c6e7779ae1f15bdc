package workflow

import (
	"troupe/actors/catalog"
	"troupe/actors/instance"
	"troupe/persistence/key"
)

// EnterIndex implements catalog.Instances.
func (r *Router) EnterIndex(workflowID string, id key.ID, ix *catalog.Index) (wait func() error, err error) {
	return r.have(workflowID, id, instance.EnterIndex{Index: ix})
}

// have has an instance write something that nobody waits for. One that it wakes goes back to sleep as soon as that is durable, when wait
// returns.
func (r *Router) have(workflowID string, id key.ID, write instance.Request) (wait func() error, err error) {
	at, err := r.shards.At(id)
	if err != nil {
		return nil, err
	}
	c, a, woken, err := r.shards.Awaken(at, workflowID, write)
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := r.shards.Wait(c)
		if woken {
			a.Passivate()
		}
		return err
	}, nil
}
