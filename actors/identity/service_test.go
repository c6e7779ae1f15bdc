package identity

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
)

// credentialForm is the text form of gateway/INTERFACE.md, "Credentials".
var credentialForm = regexp.MustCompile(`^[A-Za-z0-9._-]{43,}$`)

func changeAt(s string, at int) string {
	b := []byte(s)
	b[at] ^= 1
	return string(b)
}

func mustRevoke(t *testing.T, s *Service, c Credential) {
	t.Helper()
	require.NoError(t, s.Revoke(t.Context(), c.Kind, c.ID), "Revoke")
}

// TestALateConfirmation: a change of a leader whose followers answer and cannot write has an answer in time.
func TestALateConfirmation(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{}, func(t *testing.T, s *Service) {
		_, made := issued(t, s, Session, "john.doe", 0)
		s.confirmMax = confirmMax
		m.holdBack()
		begun := time.Now()
		err := s.Revoke(t.Context(), Session, made.ID)
		if reason := failure.Of(err).Reason; !errors.Is(err, failure.ErrOutcomeUnknown) || !strings.HasPrefix(reason, "it is refused, but that is not durable yet") || time.Since(begun) != confirmMax {
			t.Errorf("Revoke: got %v after %v", err, time.Since(begun))
		}
		_, _, err = s.Create(t.Context(), Token, CreateCredential{User: "john.doe"})
		assert.ErrorIs(t, err, failure.ErrOutcomeUnknown, "CreateToken")
		m.confirm()
	})
	onCluster(t, Options{}, func(c *cluster) {
		c.token()
		assert.Equal(t, confirmMax, c.leader().service().confirmMax, "a leader waits")
	})
}
