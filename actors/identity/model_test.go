package identity

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"troupe/actors/failure"
)

// modelCredential is the oracle's credential: only what a reader of
// gateway/INTERFACE.md, "Credentials", would write down.
type modelCredential struct {
	Credential
	secret  string
	lastUse time.Time
	ended   bool // revoked, or its user lost all sessions
}

// model is the slow and obvious second implementation: a list, wall times and
// one sequential caller.
type model struct {
	list    []*modelCredential
	enabled map[UserID]bool
}

func (m *model) accepts(c *modelCredential, kind Kind, now time.Time) bool {
	switch {
	case c.Kind != kind, c.ended, !m.enabled[c.User]:
		return false
	case !c.Expires.IsZero() && !now.Before(c.Expires):
		return false
	case c.Kind == Session && !now.Before(c.lastUse.Add(12*time.Hour)):
		return false
	}
	return true
}

// TestServiceEqualsModel runs random histories, restarts and crashes included,
// against the model.
func TestServiceEqualsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var failure any
		synctest.Test(t, func(t *testing.T) {
			// NB: rapid fails by a panic, which must not end the bubble.
			defer func() { failure = recover() }()
			equalsModel(t, rt)
		})
		if failure != nil {
			panic(failure)
		}
	})
}

func equalsModel(t *testing.T, rt *rapid.T) {
	ledger := newMemory()
	users := []UserID{"john.doe", "mary.major"}
	m := &model{enabled: map[UserID]bool{"john.doe": true, "mary.major": true}}
	options := Options{Directory: parse(t, staff)}
	s := mustStart(rt, options, ledger)
	defer func() { stop(t, s) }()

	pick := func(rt *rapid.T) *modelCredential {
		if len(m.list) == 0 {
			rt.Skip("no credential yet")
		}
		return rapid.SampledFrom(m.list).Draw(rt, "credential")
	}
	rt.Repeat(map[string]func(*rapid.T){
		"create": func(rt *rapid.T) {
			kind := rapid.SampledFrom([]Kind{Token, Session}).Draw(rt, "kind")
			ask := CreateCredential{
				User:    rapid.SampledFrom(users).Draw(rt, "user"),
				Expires: time.Duration(rapid.IntRange(0, 300).Draw(rt, "hours")) * time.Hour,
			}
			secret, c, err := s.Create(t.Context(), kind, ask)
			if !m.enabled[ask.User] {
				if !errors.Is(err, failure.ErrNotFound) {
					rt.Fatalf("create for a disabled user: got %v, want ErrNotFound", err)
				}
				return
			}
			if kind == Session && ask.Expires > s.options.SessionMax {
				if !errors.Is(err, failure.ErrInvalid) {
					rt.Fatalf("create a session of %v: got %v, want ErrInvalid", ask.Expires, err)
				}
				return
			}
			if err != nil {
				rt.Fatalf("create: %v", err)
			}
			m.list = append(m.list, &modelCredential{Credential: c, secret: secret, lastUse: c.Created})
		},
		"authenticate": func(rt *rapid.T) {
			c := pick(rt)
			kind := rapid.SampledFrom([]Kind{Token, Session}).Draw(rt, "kind")
			now := time.Now()
			p, err := s.Authenticate(kind, c.secret)
			if got, want := err == nil, m.accepts(c, kind, now); got != want {
				rt.Fatalf("authenticate %s as %v at %v: got %v, want %v", c.ID, kind, now, got, want)
			}
			if err == nil {
				if p.ID != c.User {
					rt.Fatalf("got user %s, want %s", p.ID, c.User)
				}
				c.lastUse = now
			}
		},
		"revoke": func(rt *rapid.T) {
			c := pick(rt)
			if err := s.Revoke(t.Context(), Token|Session^c.Kind, c.ID); !errors.Is(err, failure.ErrNotFound) {
				rt.Fatalf("revoke %s as another kind: %v", c.ID, err)
			}
			err := s.Revoke(t.Context(), c.Kind, c.ID)
			if err != nil && (!errors.Is(err, failure.ErrNotFound) || m.accepts(c, c.Kind, time.Now())) {
				rt.Fatalf("revoke %s: %v", c.ID, err)
			}
			c.ended = true
		},
		"change the directory": func(rt *rapid.T) {
			var src string
			for _, u := range users {
				m.enabled[u] = rapid.Bool().Draw(rt, string(u))
				src += fmt.Sprintf("  - {id: %s, disabled: %v}\n", u, !m.enabled[u])
			}
			options.Directory = parse(t, "users:\n"+src)
			s.SetDirectory(options.Directory)
			synctest.Wait()
			for _, c := range m.list {
				if c.Kind == Session && !m.enabled[c.User] {
					c.ended = true
				}
			}
		},
		"wait": func(rt *rapid.T) {
			// Odd minutes, so that a limit is never met to the instant.
			pass(time.Duration(1+rapid.IntRange(0, 900).Draw(rt, "steps")*7) * time.Minute)
		},
		"restart": func(rt *rapid.T) {
			stop(t, s)
			s = mustStart(rt, options, ledger)
			synctest.Wait()
		},
		"crash": func(rt *rapid.T) {
			pass(time.Minute) // last uses are written by then
			after := ledger.crash(0)
			stop(t, s)
			ledger = after
			s = mustStart(rt, options, ledger)
			synctest.Wait()
		},
	})
}

func stop(t rapid.TB, s *Service) {
	t.Helper()
	if err := s.Stop(context.Background()); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

func mustStart(t rapid.TB, o Options, l ledger) *Service {
	t.Helper()
	s, err := start(o, l)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return s
}
