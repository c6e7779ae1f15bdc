package identity

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

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
				if !assert.NoError(t, err, "create") {
					return
				}
				accepts(t, s, kind, secret, "mary.major")
				accepts(t, s, Session, shared, "mary.major")
				assert.NoError(t, s.Revoke(t.Context(), kind, c.ID), "revoke")
				refuses(t, s, kind, secret)
			}
		})
	}
	wait.Go(func() {
		for range rounds {
			s.SetDirectory(without)
			_, _, err := s.Create(t.Context(), Token, CreateCredential{User: "john.doe"})
			assert.ErrorIs(t, err, failure.ErrNotFound, "create for a user who is gone")
			s.SetDirectory(with)
			credentialsOf(s, Token|Session)
			s.Metrics()
		}
	})
	wait.Wait()
	assert.Len(t, credentialsOf(s, Token), workers/2*rounds, "listed tokens")
	got := len(credentialsOf(s, Session))
	assert.True(t, got >= endedSessionsKept && got <= 1+endedSessionsKept+workers, "listed sessions: got %d, want about %d", got, endedSessionsKept)
}
