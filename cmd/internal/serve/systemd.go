package serve

import (
	"context"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
)

// supervisor tells systemd that the server is ready, works and stops (sd_notify(3)). Elsewhere it does nothing.
type supervisor struct {
	log     zerolog.Logger
	stop    chan struct{}
	stopped sync.Once
	telling sync.WaitGroup
}

// superviseBy begins to tell: the server is ready.
func superviseBy(log zerolog.Logger) *supervisor {
	s := &supervisor{log: log, stop: make(chan struct{})}
	s.tell(daemon.SdNotifyReady)
	if every, err := daemon.SdWatchdogEnabled(false); err != nil {
		log.Warn().Err(err).Msg("the watchdog of systemd is not told")
	} else if every > 0 {
		s.telling.Go(func() { s.work(every / 3) })
	}
	return s
}

func (s *supervisor) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn().Err(err).Str("state", state).Msg("systemd cannot be told")
	}
}

// work says again and again that the process works.
func (s *supervisor) work(every time.Duration) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			s.tell(daemon.SdNotifyWatchdog)
		case <-s.stop:
			return
		}
	}
}

// Stop tells that the server stops. systemd has its own limit for that.
func (s *supervisor) Stop(context.Context) error {
	s.stopped.Do(func() {
		close(s.stop)
		s.telling.Wait()
		s.tell(daemon.SdNotifyStopping)
	})
	return nil
}
