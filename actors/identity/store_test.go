package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		require.NoError(t, err)
		s, err := Start(Options{Store: store, Directory: directory, PasswordCost: cheap})
		require.NoError(t, err)
		use(s)
		stop(t, s)
		require.NoError(t, store.Close())
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
		before = credentialsOf(s, Token|Session)
	})
	run(func(s *Service) {
		after := credentialsOf(s, Token|Session)
		assert.True(t, s.Metrics().Corrupt == 0 && slices.Equal(after, before), "got %+v, want %+v", after, before)
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
		assert.True(t, len(e.roles) == sessionRolesMax && slices.IsSorted(e.roles), "got %d roles", len(e.roles))
		signedIn(t, s, "john.doe", oak)
		stop(t, s)
		accepts(t, s, Token, token, "john.doe")
		turnedAway(t, s, "john.doe", oak, failure.ErrUnavailable)
		_, _, created := s.Create(t.Context(), Token, CreateCredential{User: "john.doe"})
		for call, err := range map[string]error{
			"CreateToken": created, "Revoke": s.Revoke(t.Context(), Token, token), "SetPassword": s.SetPassword(t.Context(), "john.doe", oak),
		} {
			assert.ErrorIs(t, err, failure.ErrUnavailable, "%s after Stop", call)
		}
	})
}

// TestEndsOutliveAFullDisk ends a session while the disk is full: it is refused at once,
// and for good when there is room again and a minute has passed, or the service stops.
func TestEndsOutliveAFullDisk(t *testing.T) {
	revoke := func(t *testing.T, s *Service, session string) error { return s.Revoke(t.Context(), Session, session) }
	signOut := func(t *testing.T, s *Service, session string) error { return s.SignOut(t.Context(), session) }
	for name, c := range map[string]struct {
		end  func(t *testing.T, s *Service, session string) error
		want error
	}{
		"signing out":  {signOut, failure.ErrOutcomeUnknown},
		"a revocation": {revoke, failure.ErrOutcomeUnknown},
		"a revocation after signing out": {func(t *testing.T, s *Service, session string) error {
			return errors.Join(signOut(t, s, session), revoke(t, s, session))
		}, failure.ErrOutcomeUnknown},
		"a new password": {func(t *testing.T, s *Service, _ string) error {
			return s.SetPassword(t.Context(), "john.doe", oak)
		}, persistence.ErrDiskFull},
		"one session too many": {func(t *testing.T, s *Service, _ string) error {
			_, _, err := s.Create(t.Context(), Session, CreateCredential{User: "john.doe"})
			return err
		}, persistence.ErrDiskFull},
		"a user who is disabled for a while": {func(t *testing.T, s *Service, _ string) error {
			for _, text := range []string{staffJohnDisabled, staff} {
				s.SetDirectory(parse(t, text))
				synctest.Wait()
			}
			return nil
		}, nil},
	} {
		for last, settle := range map[string]func(t *testing.T, s *Service, session string){
			"time": func(*testing.T, *Service, string) { pass(time.Minute) },
			"Stop": func(t *testing.T, s *Service, _ string) { stop(t, s) },
			"signing out again": func(t *testing.T, s *Service, session string) {
				for _, want := range []error{nil, failure.ErrUnauthorized} {
					assert.ErrorIs(t, signOut(t, s, session), want, "SignOut")
				}
			},
		} {
			t.Run(name+", "+last, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					disk := storetest.NewDisk()
					s, store := openOn(t, disk)
					session, _ := issued(t, s, Session, "john.doe", 0)
					disk.SetFree(0)
					storetest.AwaitAccepting(t, store, false)
					assert.ErrorIs(t, c.end(t, s, session), c.want)
					refuses(t, s, Session, session)
					pass(5 * time.Minute) // the writer goes on trying
					disk.SetFree(1 << 40)
					storetest.AwaitAccepting(t, store, true)
					settle(t, s, session)
					after, _ := openOn(t, disk.AfterCrash())
					refuses(t, after, Session, session)
					assert.Zero(t, s.ending.Size(), "ends are still remembered, want none")
				})
			})
		}
	}
}

func openOn(t *testing.T, disk *storetest.Disk) (*Service, *persistence.Store) {
	t.Helper()
	store, err := disk.Open(persistence.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, store.Close())
	})
	return open(t, storeLedger{store}, Options{SessionsPerUserMax: 1}), store
}
