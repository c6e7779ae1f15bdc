package identity

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
)

func count(s *Service, user UserID) (live, ended int) {
	for _, c := range credentialsOf(s, Session) {
		switch {
		case c.User != user:
		case c.Revoked.IsZero() && time.Now().Before(c.Expires):
			live++
		default:
			ended++
		}
	}
	return live, ended
}

func listed(s *Service, kinds Kind) (ids []string) {
	for _, c := range credentialsOf(s, kinds) {
		ids = append(ids, c.ID)
	}
	return ids
}

// TestSessionsPerUser holds that a user who signs in for each call fills neither
// the table nor the store, and that the session used longest ago ends.
func TestSessionsPerUser(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{CredentialsMax: 150}, func(t *testing.T, s *Service) {
		mustSet(t, s, "john.doe", oak)
		token, _ := issued(t, s, Token, "john.doe", 0)
		hers, _ := issued(t, s, Session, "mary.major", 0)
		first := signedIn(t, s, "john.doe", oak)
		pass(time.Minute)
		second := signedIn(t, s, "john.doe", oak)
		for range 98 {
			pass(time.Minute)
			accepts(t, s, Session, first, "john.doe")
			signedIn(t, s, "john.doe", oak)
		}
		live, ended := count(s, "john.doe")
		assert.True(t, live == 100 && ended == 0, "after 100 sign-ins: got %d sessions and %d that ended", live, ended)
		pass(time.Second)
		signedIn(t, s, "john.doe", oak)
		accepts(t, s, Session, first, "john.doe")
		refuses(t, s, Session, second)
		for range 200 {
			pass(time.Second)
			accepts(t, s, Session, first, "john.doe")
			issued(t, s, Session, "john.doe", 0)
		}
		live, ended = count(s, "john.doe")
		assert.True(t, live == 100 && ended == endedSessionsKept, "%v %v %v", live, ended, endedSessionsKept)
		accepts(t, s, Token, token, "john.doe")
		accepts(t, s, Session, hers, "mary.major")
		accepts(t, s, Session, first, "john.doe")
		assert.Len(t, m.durable, 100+endedSessionsKept+3, "rows")
		got := s.Metrics()
		assert.True(t, got.Full == 0 && got.Credentials == 100+endedSessionsKept+2, "metrics: got %+v", got)
		after := open(t, m.crash(0), Options{})
		live, ended = count(after, "john.doe")
		assert.True(t, live == 100 && ended == endedSessionsKept, "after a crash: got %d sessions and %d that ended", live, ended)
	})
}

// TestEndAndCreationAreOneCommit crashes before and after the commit of a session
// that ends another one.
func TestEndAndCreationAreOneCommit(t *testing.T) {
	for survivors := range 2 {
		m := newMemory()
		inBubble(t, m, Options{SessionsPerUserMax: 2}, func(t *testing.T, s *Service) {
			oldest, _ := issued(t, s, Session, "john.doe", 0)
			pass(time.Second)
			issued(t, s, Session, "john.doe", 0)
			m.holdBack()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _, err := s.Create(ctx, Session, CreateCredential{User: "john.doe"})
			assert.Error(t, err, "a session was given out before it was durable")
			refuses(t, s, Session, oldest)

			after := open(t, m.crash(survivors), Options{SessionsPerUserMax: 2})
			live, ended := count(after, "john.doe")
			assert.True(t, live == 2 && ended == survivors, "%d commits survive: got %d sessions and %d that ended, want 2 and %d", survivors, live, ended, survivors)
			m.confirm()
		})
	}
}

// TestBoundIsLowered has a user with many more sessions than the bound of now.
func TestBoundIsLowered(t *testing.T) {
	if testing.Short() {
		t.Skip("2,500 sessions, one after the other")
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := open(t, m, Options{SessionsPerUserMax: 3 * rowsMax})
		for range 2*rowsMax + 500 {
			issued(t, s, Session, "john.doe", 0)
		}
		stop(t, s)
		s = open(t, m, Options{})
		pass(time.Second)
		secret, _ := issued(t, s, Session, "john.doe", 0)
		after := open(t, m.crash(0), Options{})
		accepts(t, after, Session, secret, "john.doe")
		live, ended := count(after, "john.doe")
		assert.True(t, live == 100 && ended == endedSessionsKept, "got %d sessions and %d that ended, want 100 and %d", live, ended, endedSessionsKept)
	})
}

// TestConcurrentSessionsPerUser has more sign-ins wait for the disk than a user
// may have sessions.
func TestConcurrentSessionsPerUser(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{SessionsPerUserMax: 3}, func(t *testing.T, s *Service) {
		m.holdBack()
		done := make(chan error, 50)
		for range cap(done) {
			go func() {
				_, _, err := s.Create(t.Context(), Session, CreateCredential{User: "john.doe"})
				done <- err
			}()
		}
		synctest.Wait()
		m.confirm()
		for range cap(done) {
			err := <-done
			assert.NoError(t, err, "CreateSession")
		}
		live, _ := count(s, "john.doe")
		assert.Equal(t, 3, live)
		issued(t, s, Session, "john.doe", 0)
		live, ended := count(s, "john.doe")
		assert.True(t, live == 3 && ended == endedSessionsKept && len(m.durable) == live+ended, "%v %v %v %v", live, ended, len(m.durable), endedSessionsKept)
	})
}

// TestEndedGiveWay holds the bound of the table, unconfirmed credentials included: in a
// full one whatever has ended leaves, the oldest first, and nothing else does.
func TestEndedGiveWay(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{CredentialsMax: 3}, func(t *testing.T, s *Service) {
		_, token := issued(t, s, Token, "john.doe", 0)
		pass(time.Second)
		hers, session := issued(t, s, Session, "mary.major", 0)
		m.holdBack()
		made, refused := make(chan string, 2), make(chan error, 2)
		for range 2 { // both wait for the disk, and only one fits
			go func() {
				if secret, _, err := s.Create(t.Context(), Token, CreateCredential{User: "mary.major"}); err != nil {
					refused <- err
				} else {
					made <- secret
				}
			}()
		}
		err := <-refused
		assert.ErrorIs(t, err, failure.ErrBusy, "where nothing has ended")
		m.confirm()
		works := <-made
		got := s.Metrics()
		assert.True(t, got.Full == 1 && got.Credentials == 3, "metrics: got %+v, want 1 full and 3 credentials", got)
		mustRevoke(t, s, token)
		pass(time.Second)
		mustRevoke(t, s, session)
		issued(t, s, Session, "john.doe", 0)
		listed := listed(s, Token|Session)
		assert.True(t, !slices.Contains(listed, token.ID) && slices.Contains(listed, session.ID) && len(m.durable) == 3, "%v %v", listed, len(m.durable))
		issued(t, s, Token, "john.doe", 0)
		refuses(t, s, Session, hers)
		accepts(t, s, Token, works, "mary.major")
		_, _, err = s.Create(t.Context(), Session, CreateCredential{User: "john.doe"})
		assert.ErrorIs(t, err, failure.ErrBusy, "where nothing has ended any more")
		pass(12 * time.Hour) // now the session is idle
		issued(t, s, Token, "john.doe", 0)
	})
}

// TestRemovalThatFails holds that what has left the table, but not the store, is
// ended for good by whoever ends it once more.
func TestRemovalThatFails(t *testing.T) {
	for name, again := range map[string]func(t *testing.T, s *Service, id string) error{
		"a revocation":   func(t *testing.T, s *Service, id string) error { return s.Revoke(t.Context(), Session, id) },
		"a new password": func(t *testing.T, s *Service, _ string) error { return s.SetPassword(t.Context(), "john.doe", oak) },
		"time":           func(*testing.T, *Service, string) error { pass(2 * time.Minute); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			inBubble(t, m, Options{CredentialsMax: 2}, func(t *testing.T, s *Service) {
				secret, c := issued(t, s, Session, "john.doe", 0)
				issued(t, s, Token, "john.doe", 0)
				full := errors.New("the disk is full")
				m.failWith(full)
				assert.ErrorIs(t, s.Revoke(t.Context(), Session, c.ID), full, "Revoke")
				text, _, err := s.Create(t.Context(), Token, CreateCredential{User: "john.doe"})
				assert.True(t, text == "" && errors.Is(err, full), "CreateToken: got %q, %v, want the store's error and no secret", text, err)
				_, err = start(Options{}, m)
				assert.ErrorIs(t, err, full, "start")
				refuses(t, s, Session, secret)
				m.failWith(nil)
				assert.NoError(t, again(t, s, c.ID))
				refuses(t, open(t, m.crash(0), Options{}), Session, secret)
			})
		})
	}
}

// TestSessionsAreForgotten holds that the writer's lists do not outlive the table.
func TestSessionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := open(t, m, Options{})
		issued(t, s, Session, "john.doe", time.Hour)
		issued(t, s, Session, "mary.major", time.Hour)
		stop(t, s)
		s = open(t, m, Options{})
		stop(t, s) // so that its writer leaves the table to ours
		w := newWriter(s)
		assert.Len(t, w.sessions, 2)
		pass(8 * 24 * time.Hour)
		m.failWith(errors.New("the disk is full"))
		w.sweep()
		m.failWith(nil)
		w.sweep() // removes what the store has refused
		if len(w.sessions) != 0 || w.leaving.Size() != 0 || len(m.durable) != 0 {
			t.Errorf("got %d users, %d entries and %d rows, want none", len(w.sessions), w.leaving.Size(), len(m.durable))
		}
	})
}
