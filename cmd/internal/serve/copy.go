package serve

import (
	"context"
	"errors"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

// copyTries is how often a moment of the cluster is looked for: leaders change.
const copyTries = 2

// copyStore makes a standalone store in a folder below that of this one, which is removed by the caller, or the next start:
// a moment of the store, or of the whole cluster.
func (s *service) copyStore(ctx context.Context) (dir string, err error) {
	if s.node == nil {
		return s.store.Checkpoint()
	}
	for range copyTries {
		dir, err = s.store.Gather(string(s.node.Cluster()), func(set func(k, value []byte) error) error { return s.moments.Read(ctx, set) })
		if !errors.Is(err, failure.ErrUnavailable) || ctx.Err() != nil {
			break
		}
	}
	return dir, err
}

// backsUp says whether this node backs up the cluster: one does, which leads its own shard. A restored store, which may be
// a copy, does not write where the original backs up to.
func (s *service) backsUp() bool {
	return !s.router.SendsNothing() && (s.node == nil || s.store.Epoch(key.Meta) != 0)
}
