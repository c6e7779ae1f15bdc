package load

import (
	"context"
	"sync/atomic"
)

// RunTogether carries out several runs whose warm-ups begin at the same moment, when all
// have their instances; begin is called then, once, and must not block. The first run that
// cannot be carried out ends the others. The Prepared of the options is replaced.
func RunTogether(ctx context.Context, loads []Options, begin func()) ([]*Result, error) {
	var prepared atomic.Int64
	all := make(chan struct{})
	results := make([]*Result, len(loads))
	err := Each(ctx, len(loads), len(loads), func(ctx context.Context, i int) (err error) {
		o := loads[i]
		o.Prepared = func(ctx context.Context) {
			if prepared.Add(1) == int64(len(loads)) {
				begin()
				close(all)
			}
			select {
			case <-all:
			case <-ctx.Done():
			}
		}
		results[i], err = Run(ctx, o)
		return err
	})
	return results, err
}
