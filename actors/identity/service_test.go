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
	"troupe/persistence"
)

// credentialForm is the text form of gateway/INTERFACE.md, "Credentials".
var credentialForm = regexp.MustCompile(`^[A-Za-z0-9._-]{43,}$`)

func TestCredentialForm(t *testing.T) {
	inBubble(t, newMemory(), Options{}, func(t *testing.T, s *Service) {
		for _, kind := range []Kind{Token, Session} {
			secret, c := issued(t, s, kind, "john.doe", 0)
			assert.True(t, credentialForm.MatchString(secret), "%v: %q is not of the form %v", kind, secret, credentialForm)
			id, rest, found := strings.Cut(secret, ".")
			assert.True(t, found && id == c.ID && len(id) >= 12 && len(rest) == 43, "%v %v %v %v", kind, id, len(rest), c.ID)
			assert.False(t, strings.HasPrefix(c.ID, "-"), "id %q looks like a flag", c.ID)
		}
	})
}

func changeAt(s string, at int) string {
	b := []byte(s)
	b[at] ^= 1
	return string(b)
}

func mustRevoke(t *testing.T, s *Service, c Credential) {
	t.Helper()
	require.NoError(t, s.Revoke(t.Context(), c.Kind, c.ID), "Revoke")
}

// TestUnknownOutcome: whoever does not learn from the store what became of a change is
// told what is known of it.
func TestUnknownOutcome(t *testing.T) {
	m := newMemory()
	s := open(t, m, Options{})
	session, made := issued(t, s, Session, "john.doe", 0)
	m.failWith(persistence.ErrOutcomeUnknown)
	_, _, created := s.Create(t.Context(), Token, CreateCredential{User: "john.doe"})
	const ended, other = "it is refused, but that is not durable yet", "the outcome is unknown"
	for _, c := range []struct {
		call string
		err  error
		want string
	}{
		{"CreateToken", created, other},
		{"Revoke", s.Revoke(t.Context(), Session, made.ID), ended},
		{"SignOut", s.SignOut(t.Context(), session), ended},
		{"SetPassword", s.SetPassword(t.Context(), "john.doe", oak), other},
	} {
		got := failure.Of(c.err)
		if got.Kind != failure.ErrOutcomeUnknown || got.Reason != c.want+"; it is safe to repeat the request" || !errors.Is(c.err, persistence.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v with the reason %q, want %q", c.call, c.err, got.Reason, c.want)
		}
	}
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
