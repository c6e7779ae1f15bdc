package storetest

import (
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// gate holds every sync of a log up, like a disk that hangs.
type gate struct {
	mu struct {
		sync.Mutex
		shut    chan struct{} // closed by release; nil while open
		arrived chan struct{} // closed by the first operation that is held up
	}
}

// hold begins to hold syncs up. The channel is closed when the first one has arrived.
func (g *gate) hold() (arrived <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.shut, g.mu.arrived = make(chan struct{}), make(chan struct{})
	return g.mu.arrived
}

// release lets everything through again.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.shut != nil {
		close(g.mu.shut)
		g.mu.shut = nil
	}
}

func (g *gate) String() string { return "gate" }

func (g *gate) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
	default:
		return nil
	}
	if !strings.HasSuffix(op.Path, ".log") {
		return nil
	}
	g.mu.Lock()
	shut := g.mu.shut
	if shut != nil && g.mu.arrived != nil {
		close(g.mu.arrived)
		g.mu.arrived = nil
	}
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
	return nil
}
