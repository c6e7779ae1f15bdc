package kernel

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"
)

// New returns a kernel that answers nothing yet. An error names everything that is wrong with the options or the table.
func New(o Options, table []Route, h Hooks) (*Kernel, error) {
	o.EnsureDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	k := &Kernel{
		Started:          time.Now(),
		Options:          o,
		hooks:            h,
		IDPrefix:         newIDPrefix(),
		sessionChallenge: []string{`Cookie realm="troupe", cookie-name="` + o.SessionCookie + `"`},
		logsRequests:     o.Log.Debug().Enabled(),
		Stopping:         make(chan struct{}),
		Pressure:         newPressure(newLimits(&o).inFlight),
		allAnswered:      make(chan struct{}, 1),
		Usage:            newUsageTable(),
		Limits:           newLimits(&o),
	}
	if len(o.Origins) > 0 {
		k.vary = VaryOrigin
	}
	k.Exchanges.New = func() any { return new(Exchange) }
	if err := k.compile(table); err != nil {
		return nil, err
	}
	outside := k.newRouteMetrics(Outside, Outside)
	k.metrics.routes = append(k.metrics.routes, outside)
	for g := range k.Unmatched {
		k.Unmatched[g] = Route{Name: Outside, Group: Group(g), metrics: outside}
	}
	k.Requests, k.Cancel = context.WithCancel(context.Background())
	return k, nil
}

// newIDPrefix makes the request ids of one process differ from another's.
func newIDPrefix() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // crypto/rand never returns an error; it ends the program
	return hex.EncodeToString(random[:]) + "-"
}

// Open begins to answer requests.
func (s *Kernel) Open(services *Services) { s.services.Store(services) }

// IsOpen reports whether there are services.
func (s *Kernel) IsOpen() bool { return s.services.Load() != nil }

// Reason is why the kernel accepts no requests now; empty when it does.
func (s *Kernel) Reason() string {
	switch {
	case s.Draining.Load():
		return "stopping"
	case !s.IsOpen():
		return "starting"
	}
	return ""
}

// FollowPressure moves the limit of requests until stop.
func (s *Kernel) FollowPressure() { s.Pressure.run(s.Stopping, s.Working, &s.metrics.shed) }

// BeginStop has new requests refused.
func (s *Kernel) BeginStop() {
	s.Draining.Store(true)
	close(s.Stopping)
}

// Drain ends the streams after Options.DrainDelay, and waits until the accepted requests are answered. It reports
// whether they were in time. atEnd is called when the streams end.
func (s *Kernel) Drain(ctx context.Context, atEnd func()) bool {
	if s.Options.DrainDelay > 0 {
		select {
		case <-time.After(s.Options.DrainDelay):
		case <-ctx.Done():
		}
	}
	atEnd()
	late := time.NewTimer(s.Options.DrainMax)
	defer late.Stop()
	for s.InFlight.Load() > 0 {
		select {
		case <-s.allAnswered:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}
