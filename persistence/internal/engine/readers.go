package engine

import (
	"sync"
	"sync/atomic"
)

// readers counts the running reads, snapshots included. The files are closed only when it is zero.
type readers struct {
	// state is the number of readers, plus closing once no more may enter.
	state atomic.Int64
	// gone is closed when shut was called and no reader is left. A reader that enters
	// after that leaves at once and would close it again, hence last.
	gone chan struct{}
	last sync.Once
}

const closing = 1 << 62

// Enter counts one reader in. It is false, and Leave must not be called, once shut was called.
func (r *readers) Enter() bool {
	if r.state.Add(1) < closing {
		return true
	}
	r.Leave()
	return false
}

// Leave counts one reader out.
func (r *readers) Leave() {
	if r.state.Add(-1) == closing {
		r.last.Do(func() { close(r.gone) })
	}
}

// Shut lets no more readers in; gone is closed when those inside have left. It must be called once.
func (r *readers) Shut() {
	if r.state.Add(closing) == closing {
		r.last.Do(func() { close(r.gone) })
	}
}

// Gone is closed when Shut was called and no reader is left.
func (r *readers) Gone() <-chan struct{} { return r.gone }
