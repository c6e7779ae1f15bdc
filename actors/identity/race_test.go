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
	shared, _ := issued(t, s, Session, "mary.major", 0)
	const workers, rounds = 8, 200
	var wait sync.WaitGroup
	for worker := range workers {
		kind := Token
		if worker%2 == 1 {
			kind = Session
		}
		wait.Go(func() {
			for range rounds {
				secret, c, err := s.Create(t.Context(), kind, CreateCredential{User: "mary.major"})
				if err != nil {
					t.Errorf("create: %v", err)
					return
				}
				accepts(t, s, kind, secret, "mary.major")
				accepts(t, s, Session, shared, "mary.major")
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
			_, _, err := s.Create(t.Context(), Token, CreateCredential{User: "john.doe"})
			if !errors.Is(err, failure.ErrNotFound) {
				t.Errorf("create for a user who is gone: got %v, want ErrNotFound", err)
			}
			s.SetDirectory(with)
			credentialsOf(s, Token|Session)
			s.Metrics()
		}
	})
	wait.Wait()
	if got := len(credentialsOf(s, Token)); got != workers/2*rounds {
		t.Errorf("listed tokens: got %d, want %d", got, workers/2*rounds)
	}
	if got := len(credentialsOf(s, Session)); got < endedSessionsKept || got > 1+endedSessionsKept+workers {
		t.Errorf("listed sessions: got %d, want about %d", got, endedSessionsKept)
	}
}
