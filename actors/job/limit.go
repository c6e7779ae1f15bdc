package job

import "time"

// heldPause is how long a call waits for what was promised to others, who may not need it.
const heldPause = 20 * time.Millisecond

// localRunning is how many leases there are of a type and workflow.
func (s *Service) localRunning(of typeOf) int {
	if k := s.types[of.typ]; k != nil {
		return k.shareOf(of.workflow).running
	}
	return 0
}

// within has take give no more than the limits allow. runs says how many leases of a type there are; s.mu is held. at is when there are
// tokens again, zero when nothing waits for them.
func (s *Service) within(in *asked, runs func(typeOf) int, take func(*asked) ([]Leased, error)) (leased []Leased, at time.Time, err error) {
	now := s.o.Clock()
	held := map[typeOf]int{}
	s.mu.Lock()
	for i := range in.Grants {
		g := &in.Grants[i]
		if !g.isLimited() {
			continue
		}
		of := typeOf{g.Type, g.Workflow}
		l := s.limits[of]
		if l == nil {
			l = &limit{}
			s.limits[of] = l
		}
		g.Most = in.Max
		if g.Running > 0 {
			g.Most = max(min(g.Most, g.Running-runs(of)-l.held), 0)
		}
		if g.PerSecond > 0 {
			l.refill(g.PerSecond, now)
			if g.Most > int(l.tokens) {
				if g.Most = int(l.tokens); g.Most == 0 {
					if again := now.Add(time.Duration(min((1-l.tokens)/g.PerSecond, time.Hour.Seconds()) * float64(time.Second))); at.IsZero() || again.Before(at) {
						at = again
					}
				}
			}
			l.tokens -= float64(g.Most)
		}
		if again := now.Add(heldPause); g.Most < in.Max && l.held > 0 && (at.IsZero() || again.Before(at)) {
			at = again
		}
		l.held += g.Most
		held[of] = g.Most
	}
	s.mu.Unlock()
	if !at.IsZero() {
		at = time.Now().Add(at.Sub(now) + time.Millisecond) // as timers know it
	}
	perSecond := map[typeOf]float64{}
	for i := range in.Grants {
		perSecond[typeOf{in.Grants[i].Type, in.Grants[i].Workflow}] = in.Grants[i].PerSecond
	}
	leased, err = take(in)
	if len(held) == 0 {
		return leased, at, err
	}
	got := map[typeOf]int{}
	for i := range leased {
		got[typeOf{leased[i].Type, leased[i].WorkflowID}]++
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, n := range held {
		l := s.limits[of]
		l.held -= n
		if perSecond[of] > 0 {
			l.tokens += float64(n - got[of])
		}
	}
	return leased, at, err
}
