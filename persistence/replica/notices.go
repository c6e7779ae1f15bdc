package replica

import (
	"fmt"
	"sync"

	"github.com/rs/zerolog"

	"troupe/persistence/replica/internal/mesh"
)

// notices calls functions one after the other, without holding up those who ask for it.
type notices struct {
	mu    sync.Mutex
	queue []func()
	wake  chan struct{}
}

func (n *notices) add(f func()) {
	n.mu.Lock()
	n.queue = append(n.queue, f)
	n.mu.Unlock()
	mesh.Signal(n.wake)
}

func (n *notices) loop(stop chan struct{}) {
	for {
		n.mu.Lock()
		all := n.queue
		n.queue = nil
		n.mu.Unlock()
		for _, f := range all {
			f()
		}
		if len(all) > 0 {
			continue
		}
		select {
		case <-n.wake:
		case <-stop:
			return
		}
	}
}

// raftLogger is what Raft logs to; operators get lines of our own.
type raftLogger struct{ log zerolog.Logger }

func (l raftLogger) Debug(v ...any)                 { l.log.Trace().Msg("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Debugf(format string, v ...any) { l.log.Trace().Msgf("raft: "+format, v...) }
func (l raftLogger) Info(v ...any)                  { l.log.Debug().Msg("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Infof(format string, v ...any)  { l.log.Debug().Msgf("raft: "+format, v...) }
func (l raftLogger) Warning(v ...any)               { l.log.Debug().Msg("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Warningf(f string, v ...any)    { l.log.Debug().Msgf("raft: "+f, v...) }
func (l raftLogger) Error(v ...any)                 { l.log.Warn().Msg("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Errorf(format string, v ...any) { l.log.Warn().Msgf("raft: "+format, v...) }
func (l raftLogger) Fatal(v ...any)                 { panic("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Fatalf(format string, v ...any) { panic("raft: " + fmt.Sprintf(format, v...)) }
func (l raftLogger) Panic(v ...any)                 { panic("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Panicf(format string, v ...any) { panic("raft: " + fmt.Sprintf(format, v...)) }
