package identity

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vouchedIn signs somebody in whom a provider has recognised.
func vouchedIn(t *testing.T, s *Service, user UserID, roles ...RoleID) string {
	t.Helper()
	secret, p, err := s.SignInVouched(t.Context(), Vouched{User: user, Roles: roles, Address: nearby})
	require.True(t, err == nil && p.ID == user, "SignInVouched as %s: got %+v, %v", user, p, err)
	return secret
}

func hasRoles(t *testing.T, s *Service, session string, roles, privileges string) *Principal {
	t.Helper()
	p, err := s.Authenticate(Session, session)
	require.NoError(t, err, "Authenticate")
	assert.Equal(t, roles, strings.Join(p.Roles, " "), "roles")
	assert.Equal(t, privileges, strings.Join(p.Privileges, " "), "privileges")
	return p
}

// TestVouchedCostsNothing: the principal is made once, and that of a user without further roles is the user's own.
func TestVouchedCostsNothing(t *testing.T) {
	s := open(t, newMemory(), Options{})
	plain, boss := vouchedIn(t, s, "john.doe"), vouchedIn(t, s, "john.doe", "boss")
	first := hasRoles(t, s, boss, "boss clerk", "mod-form mod-form-portal mod-workflows")
	assert.Same(t, first, hasRoles(t, s, boss, "boss clerk", "mod-form mod-form-portal mod-workflows"), "the principal is made anew for each request")
	assert.Same(t, s.Directory().Principal("john.doe"), hasRoles(t, s, plain, "clerk", "mod-form mod-form-portal"))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = s.Authenticate(Session, boss) }), "Authenticate allocates")
}

func TestAProviderWhoseCallerHasGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := open(t, newMemory(), Options{}).SignInVouched(ctx, Vouched{User: "john.doe"})
	assert.False(t, err != nil && !errors.Is(err, context.Canceled), "got %v", err)
}
