package byitself

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/gateway/client"
)

const (
	starts = 5
	// settle is how long a process has after its start before its memory is read.
	settle = 3 * time.Second
	// callers send events one after the other during a storm, to so many instances.
	callers, called = 16, 1000
)

// runPending measures starts with and without timers.
func (m *measurement) runPending(ctx context.Context) error {
	m.text.Printf("\n## %d timers that are not due\n\nEach start is of a process of its own, after a clean end, least–median–most of %d; memory is read %s after it.\n\n", m.pending, starts, settle)
	m.text.Head("Store", "Start, ms", "Memory, MB")
	for _, with := range []bool{false, true} {
		s, err := m.start(ctx, "")
		if err != nil {
			return err
		}
		begun := time.Now()
		name := "as many instances without timers"
		item := func(int) string {
			return `{"workflowId":"resting","data":{"svcPublic":{"due":"2026-01-01T00:00:00Z"}}}`
		}
		if with {
			name = "instances with one each"
			item = func(i int) string { return waiting(begun.Add(24*time.Hour + time.Duration(i)*time.Millisecond)) }
		}
		_, err = s.many(ctx, m.pending, item)
		fmt.Fprintf(m.Errs, "%d instances: %.0f s\n", m.pending, time.Since(begun).Seconds())
		s.Stop()
		if err != nil {
			return err
		}
		var ready, memory []float64
		for range starts {
			took, err := m.restart(ctx, s)
			if err != nil {
				return err
			}
			ready = append(ready, float64(took.Milliseconds()))
			<-time.After(settle)
			memory = append(memory, float64(process.ResidentBytes(s.PID()))/1e6)
			s.Stop()
		}
		m.text.Printf("| %s | %s | %s |\n", name, harness.Spread(ready, "%.0f"), harness.Spread(memory, "%.0f"))
	}
	return nil
}

// runStorm measures timers that are due at once, and events beside them.
func (m *measurement) runStorm(ctx context.Context) error {
	s, err := m.start(ctx, "")
	if err != nil {
		return err
	}
	defer s.Stop()
	resting, err := s.many(ctx, called, func(int) string { return `{"workflowId":"resting"}` })
	if err != nil {
		return err
	}
	due := time.Now().Add(20*time.Second + time.Duration(m.storm/3)*time.Millisecond/10)
	if _, err := s.many(ctx, m.storm, func(int) string { return waiting(due) }); err != nil {
		return err
	}
	left := time.Until(due)
	fmt.Fprintf(m.Errs, "the storm is due in %s\n", left)
	if left < 10*time.Second {
		return fmt.Errorf("making %d instances took too long: only %s are left before the timers are due", m.storm, left)
	}
	live := &live{s: s, ids: resting}
	stop := live.begin(ctx)
	load.Sleep(ctx, time.Until(due))
	fired, err := s.fired(ctx, int64(m.storm))
	ended := time.Now()
	<-time.After(3 * time.Second)
	if err := stop(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	m.text.Printf("\n## A storm of %d timers that are due at once\n\n%d callers send events to %d other instances all the time, each waits for its answer.\n\n", m.storm, callers, called)
	m.text.Printf("All had come after %.1f s: %.0f a second. The last one was late by %.1f s.\n\n", ended.Sub(due).Seconds(), float64(m.storm)/ended.Sub(due).Seconds(), float64(fired.LateMilliseconds)/1000)
	m.text.Head("Events of callers", "a second", "median, ms", "99 %, ms", "most, ms")
	for _, part := range []struct {
		name     string
		from, to time.Time
	}{{"8 s before", due.Add(-8 * time.Second), due}, {"during the storm", due, ended}} {
		live.row(&m.text, part.name, part.from, part.to)
	}
	return nil
}

// timerMetrics is what /metrics says of timers.
type timerMetrics struct{ Fired, LateMilliseconds int64 }

// fired returns when so many timers have come.
func (s *server) fired(ctx context.Context, count int64) (timerMetrics, error) {
	c := http.Client{Timeout: time.Minute}
	defer c.CloseIdleConnections()
	for {
		var metrics struct {
			Workflow struct{ Timers timerMetrics } `json:"workflow"`
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Admin+"/metrics", nil)
		if err != nil {
			return timerMetrics{}, err
		}
		answer, err := c.Do(r)
		if err != nil {
			return timerMetrics{}, err
		}
		err = json.NewDecoder(answer.Body).Decode(&metrics)
		_ = answer.Body.Close()
		if err != nil || metrics.Workflow.Timers.Fired >= count {
			return metrics.Workflow.Timers, err
		}
		if !load.Sleep(ctx, 20*time.Millisecond) {
			return timerMetrics{}, ctx.Err()
		}
	}
}

// live sends events all the time.
type live struct {
	s   *server
	ids []string

	mu     sync.Mutex
	called []answered
}

type answered struct {
	at   time.Time
	took time.Duration
}

func (l *live) begin(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- load.Each(context.WithoutCancel(ctx), callers, callers, func(whole context.Context, c int) error {
			for i := c; ctx.Err() == nil && whole.Err() == nil; i += callers {
				begun := time.Now()
				_, err := l.s.Send(whole, client.SendRequest{WorkflowID: "resting", InstanceID: l.ids[i%len(l.ids)], Event: "go", Minimal: true})
				if err != nil {
					return err
				}
				l.mu.Lock()
				l.called = append(l.called, answered{begun, time.Since(begun)})
				l.mu.Unlock()
			}
			return nil
		})
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

// row is a line of the table: the events that were sent in a time.
func (l *live) row(to *harness.Table, name string, from, until time.Time) {
	var took load.Histogram
	for _, a := range l.called {
		if !a.at.Before(from) && a.at.Before(until) {
			took.Record(a.took)
		}
	}
	of := took.Summary(until.Sub(from))
	if of.Count == 0 {
		to.Row(name, 0, "", "", "")
		return
	}
	to.Printf("| %s | %.0f | %.1f | %.1f | %.1f |\n", name, of.PerSecond, of.P50.Milliseconds(), of.P99.Milliseconds(), of.Max.Milliseconds())
}
