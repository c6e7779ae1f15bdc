package identity

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/failure"
	_ "troupe/internal/fixedseed"
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
				require.ErrorIs(rt, err, failure.ErrNotFound, "create for a disabled user")
				return
			}
			if kind == Session && ask.Expires > s.options.SessionMax {
				require.ErrorIs(rt, err, failure.ErrInvalid, "create a session of %v", ask.Expires)
				return
			}
			require.NoError(rt, err, "create")
			m.list = append(m.list, &modelCredential{Credential: c, secret: secret, lastUse: c.Created})
		},
		"authenticate": func(rt *rapid.T) {
			c := pick(rt)
			kind := rapid.SampledFrom([]Kind{Token, Session}).Draw(rt, "kind")
			now := time.Now()
			p, err := s.Authenticate(kind, c.secret)
			require.Equal(rt, m.accepts(c, kind, now), err == nil, "authenticate %s as %v at %v", c.ID, kind, now)
			if err == nil {
				require.Equal(rt, c.User, p.ID, "got user")
				c.lastUse = now
			}
		},
		"revoke": func(rt *rapid.T) {
			c := pick(rt)
			require.ErrorIs(rt, s.Revoke(t.Context(), Token|Session^c.Kind, c.ID), failure.ErrNotFound, "revoke %s as another kind", c.ID)
			err := s.Revoke(t.Context(), c.Kind, c.ID)
			require.False(rt, err != nil && (!errors.Is(err, failure.ErrNotFound) || m.accepts(c, c.Kind, time.Now())), "revoke %s: %v", c.ID, err)
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
	assert.NoError(t, s.Stop(context.Background()), "Stop")
}

func mustStart(t rapid.TB, o Options, l ledger) *Service {
	t.Helper()
	s, err := start(o, l)
	require.NoError(t, err, "start")
	return s
}
