package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
)

// vouchedIn signs somebody in whom a provider has recognised.
func vouchedIn(t *testing.T, s *Service, user UserID, roles ...RoleID) string {
	t.Helper()
	secret, p, err := s.SignInVouched(t.Context(), Vouched{User: user, Roles: roles, Address: nearby})
	require.True(t, err == nil && p.ID == user, "SignInVouched as %s: got %+v, %v", user, p, err)
	return secret
}

// hasRoles checks what a session may do.
func hasRoles(t *testing.T, s *Service, session string, roles, privileges string) *Principal {
	t.Helper()
	p, err := s.Authenticate(Session, session)
	require.NoError(t, err, "Authenticate")
	assert.Equal(t, roles, strings.Join(p.Roles, " "), "roles")
	assert.Equal(t, privileges, strings.Join(p.Privileges, " "), "privileges")
	return p
}

// TestVouchedRoles holds that the roles of a provider are those of one session:
// beside the user's own, as identity.yaml has them at the moment.
func TestVouchedRoles(t *testing.T) {
	s := open(t, newMemory(), Options{})
	const own, both = "mod-form mod-form-portal", "mod-form mod-form-portal mod-workflows"
	hers, _ := issued(t, s, Session, "mary.major", 0)
	hasRoles(t, s, hers, "boss clerk", "mod-admin mod-form mod-form-portal mod-workflows")
	plain := vouchedIn(t, s, "john.doe")
	boss := vouchedIn(t, s, "john.doe", "boss", "clerk", "boss")
	strange := vouchedIn(t, s, "john.doe", "gone")
	assert.True(t, plain != boss && credentialForm.MatchString(boss), "got the sessions %q and %q, want two new ones", plain, boss)
	first := hasRoles(t, s, boss, "boss clerk", both)
	assert.Same(t, first, hasRoles(t, s, boss, "boss clerk", both), "the principal is made anew for each request")
	assert.Same(t, s.Directory().Principal("john.doe"), hasRoles(t, s, plain, "clerk", own))
	hasRoles(t, s, strange, "clerk", own)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = s.Authenticate(Session, boss) }), "Authenticate allocates")
	// What identity.yaml says about the roles holds at once.
	s.SetDirectory(parse(t, strings.Replace(staff, "[mod-workflows, mod-form]", "[mod-admin]", 1)))
	hasRoles(t, s, boss, "boss clerk", "mod-admin mod-form mod-form-portal")
	s.SetDirectory(parse(t, strings.Replace(staff, "roles:\n", "roles:\n  - {id: gone}\n", 1)))
	hasRoles(t, s, strange, "clerk gone", own)
	s.SetDirectory(parse(t, staffJohnDisabled))
	refuses(t, s, Session, boss)
	hasRoles(t, s, hers, "", "")
	e, _ := s.entries.Load(boss[:idChars])
	assert.Equal(t, "signed in by the provider from 192.0.2.7", e.note, "note")
}

// TestVouchedIsRefused holds that a provider cannot bring in anybody whom
// identity.yaml does not name.
func TestVouchedIsRefused(t *testing.T) {
	s := open(t, newMemory(), Options{})
	many := make([]RoleID, sessionRolesMax+1)
	for i := range many {
		many[i] = RoleID(fmt.Sprintf("role%d", i))
	}
	for name, c := range map[string]struct {
		vouched Vouched
		want    error
	}{
		"an unknown user":        {Vouched{User: "nobody"}, failure.ErrUnauthorized},
		"a disabled user":        {Vouched{User: "gone.girl", Roles: []RoleID{"boss"}}, failure.ErrUnauthorized},
		"nobody":                 {Vouched{}, failure.ErrUnauthorized},
		"another case":           {Vouched{User: "John.Doe"}, failure.ErrUnauthorized},
		"a name that breaks log": {Vouched{User: "x\n{}"}, failure.ErrUnauthorized},
		"too many roles":         {Vouched{User: "john.doe", Roles: many}, failure.ErrInvalid},
		"a role that cannot be":  {Vouched{User: "john.doe", Roles: []RoleID{"a b"}}, failure.ErrInvalid},
		"a role without a name":  {Vouched{User: "john.doe", Roles: []RoleID{""}}, failure.ErrInvalid},
	} {
		secret, p, err := s.SignInVouched(t.Context(), c.vouched)
		assert.True(t, secret == "" && p == nil && errors.Is(err, c.want), "%s: got %q, %+v, %v, want %v", name, secret, p, err, c.want)
	}
	assert.Empty(t, credentialsOf(s, Session), "sessions were made")
	m := s.Metrics()
	assert.True(t, m.SignInsFailed == 5 && m.SignIns == 0, "metrics: got %+v", m)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.SignInVouched(ctx, Vouched{User: "john.doe"})
	assert.False(t, err != nil && !errors.Is(err, context.Canceled), "a caller who has gone: got %v", err)
}

// TestPrincipal: what another node has authenticated has the rights that the present directory
// gives, and the roles of its credential.
func TestPrincipal(t *testing.T) {
	s := open(t, newMemory(), Options{})
	for _, c := range []struct {
		user  UserID
		roles []string
		want  string
	}{
		{"john.doe", nil, "[clerk] [mod-form mod-form-portal]"},
		{"john.doe", []string{"boss", "unknown"}, "[boss clerk] [mod-form mod-form-portal mod-workflows]"},
		{"gone.girl", []string{"boss"}, ""},
		{"nobody", nil, ""},
		{"", nil, ""},
	} {
		p, err := s.Principal(c.user, c.roles)
		got := ""
		if p != nil {
			got = fmt.Sprint(p.Roles, p.Privileges)
		}
		assert.True(t, got == c.want && (err != nil) == (c.want == "") && (err == nil || errors.Is(err, failure.ErrUnauthorized)),
			"%s with %v: got %s, %v, want %s", c.user, c.roles, got, err, c.want)
	}
}
