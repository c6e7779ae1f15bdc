package serve

import (
	"fmt"
	"sync"
	"time"

	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/cmd/internal/cli"
	"troupe/gateway"
	"troupe/persistence"
)

// troubles are parts of /readyz?verbose that say what will need somebody soon, while requests are taken.
func (s *service) troubles() []gateway.Part {
	clock, counter := &clockWatch{began: time.Now()}, s.router.Waiting.NewCounter()
	return []gateway.Part{
		{Name: "disk", Optional: true, Ready: func() error {
			return fillingUp(s.store.Metrics(), s.config.Store.FreeBytesMin)
		}},
		{Name: "outbox", Optional: true, Ready: func() error {
			return stuck(s.router.Metrics().Outbox, time.Now(), counter.Counts)
		}},
		{Name: "clock", Optional: true, Ready: func() error {
			return clock.look(time.Now().Round(0), time.Since(clock.began))
		}},
	}
}

// fillingUp warns while writes are taken still.
func fillingUp(m persistence.Metrics, least int64) error {
	if least <= 0 || m.FreeBytes < 0 || m.FreeBytes >= 4*least {
		return nil
	}
	return fmt.Errorf("the disk of the store is filling up: %s are free, and below %s (freeBytesMin) writes are refused: free some space",
		cli.SizeText(m.FreeBytes), cli.SizeText(least))
}

// stuckAfter is how long attempts may fail before somebody should look.
const stuckAfter = 5 * time.Minute

// NB: only then is it counted what waits, which may take a while.
func stuck(m outbox.Metrics, now time.Time, count func() (*pending.Counts, error)) error {
	if m.FailingSince.IsZero() || now.Sub(m.FailingSince) < stuckAfter {
		return nil
	}
	waiting, err := count()
	if err != nil {
		return err
	}
	n := int64(0)
	for _, of := range waiting.Pending {
		n += of
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("the outbox is stuck: every attempt has failed since %s; deliveries that wait: %d; see troupe outbox list",
		m.FailingSince.UTC().Format(time.RFC3339), n)
}

// clockWatch notices when the clock is set: then it and the time that passes part.
type clockWatch struct {
	began time.Time // with the monotonic clock

	mu   sync.Mutex
	last time.Duration // by how much the clock was ahead of the time that passed, at the last look
	at   time.Time     // of the last jump; zero: there was none
	by   time.Duration
}

const (
	jumpMin   = time.Second // a smaller one does no harm
	jumpShown = time.Hour
)

// look takes the clock's time, and how much time has passed since began.
func (c *clockWatch) look(now time.Time, passed time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := now.Sub(c.began.Round(0)) - passed
	if by := ahead - c.last; by.Abs() > jumpMin {
		c.at, c.by = now, by
	}
	if c.last = ahead; c.at.IsZero() || now.Sub(c.at).Abs() > jumpShown {
		return nil
	}
	direction := "ahead"
	if c.by < 0 {
		direction = "back"
	}
	return fmt.Errorf("the clock jumped %v %s, as was seen at %s: timers and schedules go by it, so check how it is set (NTP), or whether the machine was asleep",
		c.by.Abs().Round(time.Second), direction, c.at.UTC().Format(time.RFC3339))
}
