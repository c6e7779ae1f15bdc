package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"troupe/actors/failure"
)

// vouchedIn signs somebody in whom a provider has recognised.
func vouchedIn(t *testing.T, s *Service, user UserID, roles ...RoleID) string {
	t.Helper()
	secret, p, err := s.SignInVouched(t.Context(), Vouched{User: user, Roles: roles, Address: nearby})
	if err != nil || p.ID != user {
		t.Fatalf("SignInVouched as %s: got %+v, %v", user, p, err)
	}
	return secret
}

// hasRoles checks what a session may do.
func hasRoles(t *testing.T, s *Service, session string, roles, privileges string) *Principal {
	t.Helper()
	p, err := s.Authenticate(Session, session)
	if err != nil {
		t.Fatalf("Authenticate: %v", err)
	}
	if got := strings.Join(p.Roles, " "); got != roles {
		t.Errorf("roles: got %q, want %q", got, roles)
	}
	if got := strings.Join(p.Privileges, " "); got != privileges {
		t.Errorf("privileges: got %q, want %q", got, privileges)
	}
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
	if plain == boss || !credentialForm.MatchString(boss) {
		t.Errorf("got the sessions %q and %q, want two new ones", plain, boss)
	}
	first := hasRoles(t, s, boss, "boss clerk", both)
	if again := hasRoles(t, s, boss, "boss clerk", both); again != first {
		t.Error("the principal is made anew for each request")
	}
	if hasRoles(t, s, plain, "clerk", own) != s.Directory().Principal("john.doe") {
		t.Error("a session without roles has a principal of its own")
	}
	hasRoles(t, s, strange, "clerk", own)
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Authenticate(Session, boss) }); n != 0 {
		t.Errorf("Authenticate allocates %v times, want none", n)
	}
	// What identity.yaml says about the roles holds at once.
	s.SetDirectory(parse(t, strings.Replace(staff, "[mod-workflows, mod-form]", "[mod-admin]", 1)))
	hasRoles(t, s, boss, "boss clerk", "mod-admin mod-form mod-form-portal")
	s.SetDirectory(parse(t, strings.Replace(staff, "roles:\n", "roles:\n  - {id: gone}\n", 1)))
	hasRoles(t, s, strange, "clerk gone", own)
	s.SetDirectory(parse(t, staffJohnDisabled))
	refuses(t, s, Session, boss)
	hasRoles(t, s, hers, "", "")
	if e, _ := s.entries.Load(boss[:idChars]); e.note != "signed in by the provider from 192.0.2.7" {
		t.Errorf("note: got %q", e.note)
	}
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
		if secret, p, err := s.SignInVouched(t.Context(), c.vouched); secret != "" || p != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: got %q, %+v, %v, want %v", name, secret, p, err, c.want)
		}
	}
	if n := len(credentialsOf(s, Session)); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
	if m := s.Metrics(); m.SignInsFailed != 5 || m.SignIns != 0 {
		t.Errorf("metrics: got %+v", m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.SignInVouched(ctx, Vouched{User: "john.doe"}); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who has gone: got %v", err)
	}
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
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, failure.ErrUnauthorized) {
			t.Errorf("%s with %v: got %s, %v, want %s", c.user, c.roles, got, err, c.want)
		}
	}
}
