package storetest

import (
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// gate holds operations on some files up, like a disk that hangs.
type gate struct {
	match func(op errorfs.Op) bool

	mu struct {
		sync.Mutex
		shut    chan struct{} // closed by release; nil while open
		arrived chan struct{} // closed by the first operation that is held up
	}
}

// logSyncGate holds up every sync of a log.
func logSyncGate() *gate {
	return &gate{match: func(op errorfs.Op) bool {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			return strings.HasSuffix(op.Path, ".log")
		}
		return false
	}}
}

// tableGate holds up every new table, so that logs stay live.
func tableGate() *gate {
	return &gate{match: func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst")
	}}
}

// hold begins to hold operations up. The channel is closed when the first one has arrived.
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
	if !g.match(op) {
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
