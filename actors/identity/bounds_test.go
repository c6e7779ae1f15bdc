package identity

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
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
