package identity

import (
	"errors"
	"sync"
	"testing"

	"troupe/actors/failure"
)

// TestConcurrentUse has creations, uses and revocations at once while the
// directory changes. It is mostly for the race detector.
func TestConcurrentUse(t *testing.T) {
	s := open(t, newMemory(), Options{})
	with, without := parse(t, staff), parse(t, staffWithoutJohn)
	const workers, rounds = 8, 200
	var wait sync.WaitGroup
	for worker := range workers {
		kind := Token
		if worker%2 == 1 {
			kind = Session
		}
		wait.Go(func() {
			for range rounds {
				secret, c, err := s.issue(t.Context(), kind, CreateCredential{User: "mary.major"})
				if err != nil {
					t.Errorf("create: %v", err)
					return
				}
				accepts(t, s, kind, secret, "mary.major")
				if err := s.Revoke(t.Context(), kind, c.ID); err != nil {
					t.Errorf("revoke: %v", err)
				}
				refuses(t, s, kind, secret)
			}
		})
	}
	wait.Go(func() {
		for range rounds {
			s.SetDirectory(without)
			_, _, err := s.CreateToken(t.Context(), CreateCredential{User: "john.doe"})
			if !errors.Is(err, failure.ErrNotFound) {
				t.Errorf("create for a user who is gone: got %v, want ErrNotFound", err)
			}
			s.SetDirectory(with)
			s.Credentials(Token | Session)
			s.Metrics()
		}
	})
	wait.Wait()
	if got := len(s.Credentials(Token)); got != workers/2*rounds {
		t.Errorf("listed tokens: got %d, want %d", got, workers/2*rounds)
	}
	if got := len(s.Credentials(Session)); got < endedSessionsKept || got > endedSessionsKept+workers {
		t.Errorf("listed sessions: got %d, want about %d", got, endedSessionsKept)
	}
}

// TestOneSessionManyRequests holds that requests of one session at the same time
// see one session.
func TestOneSessionManyRequests(t *testing.T) {
	s := open(t, newMemory(), Options{})
	secret, c := issued(t, s, Session, "john.doe", 0)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 1000 {
				accepts(t, s, Session, secret, "john.doe")
			}
		})
	}
	wait.Wait()
	if list := s.Credentials(Session); len(list) != 1 || list[0].ID != c.ID {
		t.Errorf("sessions: got %+v, want one", list)
	}
}
