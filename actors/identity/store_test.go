package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/storetest"
)

var _ Store = (*persistence.Store)(nil)

// TestRestartsOnTheStore holds on the real store what the other tests hold on memory:
// credentials, revocations, last uses, roles and passwords survive a restart.
func TestRestartsOnTheStore(t *testing.T) {
	disk, directory := storetest.NewDisk(), parse(t, staff)
	run := func(use func(s *Service)) {
		t.Helper()
		store, err := disk.Open(persistence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Start(Options{Store: store, Directory: directory, PasswordCost: cheap})
		if err != nil {
			t.Fatal(err)
		}
		use(s)
		stop(t, s)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	all := []RoleID{"boss"}
	for i := range sessionRolesMax - 1 {
		all = append(all, RoleID(fmt.Sprintf("%s%02d", strings.Repeat("x", 126), i)))
	}
	var token, revoked, ended, vouched, session string
	var before []Credential
	run(func(s *Service) {
		mustSet(t, s, "john.doe", oak)
		mustSet(t, s, "mary.major", oak)
		ended = signedIn(t, s, "john.doe", oak)
		mustSet(t, s, "john.doe", "another oak")
		session, vouched = signedIn(t, s, "john.doe", "another oak"), vouchedIn(t, s, "john.doe", all...)
		token, _ = issued(t, s, Token, "john.doe", 0)
		var c Credential
		revoked, c = issued(t, s, Token, "john.doe", 0)
		mustRevoke(t, s, c)
		accepts(t, s, Token, token, "john.doe")
		before = s.Credentials(Token | Session)
	})
	run(func(s *Service) {
		after := s.Credentials(Token | Session)
		if s.Metrics().Corrupt != 0 || !slices.Equal(after, before) {
			t.Errorf("got %+v, want %+v", after, before)
		}
		accepts(t, s, Token, token, "john.doe")
		refuses(t, s, Token, revoked)
		refuses(t, s, Session, ended)
		accepts(t, s, Session, session, "john.doe")
		hasRoles(t, s, vouched, "boss clerk", "mod-form mod-form-portal mod-workflows")
		turnedAway(t, s, "john.doe", oak, failure.ErrUnauthorized)
		signedIn(t, s, "mary.major", oak)
		mustSet(t, s, "john.doe", oak)
	})
	run(func(s *Service) {
		refuses(t, s, Session, vouched)
		e, _ := s.entries.Load(vouched[:idChars])
		if len(e.roles) != sessionRolesMax || !slices.IsSorted(e.roles) {
			t.Errorf("got %d roles", len(e.roles))
		}
		signedIn(t, s, "john.doe", oak)
		stop(t, s)
		turnedAway(t, s, "john.doe", oak, failure.ErrUnavailable)
		if err := s.SetPassword(t.Context(), "john.doe", oak); !errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("SetPassword after Stop: got %v, want ErrUnavailable", err)
		}
	})
}
