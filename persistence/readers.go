package persistence

import (
	"sync"
	"sync/atomic"
)

// readers counts the reads that are running, snapshots included, so that nobody
// takes the files away under them.
type readers struct {
	// state is the number of readers, plus closing once no more may enter.
	state atomic.Int64
	// gone is closed by the last reader that leaves after shut. Readers that come
	// too late pass through there as well, hence last.
	gone chan struct{}
	last sync.Once
}

const closing = 1 << 62

// enter counts one reader in. It is false, and leave must not be called, once
// shut was called.
func (r *readers) enter() bool {
	if r.state.Add(1) < closing {
		return true
	}
	r.leave()
	return false
}

func (r *readers) leave() {
	if r.state.Add(-1) == closing {
		r.last.Do(func() { close(r.gone) })
	}
}

// shut lets no more readers in; gone is closed when those inside have left. It
// must be called once.
func (r *readers) shut() {
	if r.state.Add(closing) == closing {
		r.last.Do(func() { close(r.gone) })
	}
}
