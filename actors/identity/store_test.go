package identity

import (
	"testing"
	"time"

	"troupe/persistence"
)

var _ Store = (*persistence.Store)(nil)

// TestStoreReopened holds on the real store what the other tests hold on memory:
// credentials, revocations and last uses survive a restart.
func TestStoreReopened(t *testing.T) {
	dir := t.TempDir()
	directory := parse(t, staff)
	session := func(t *testing.T, use func(s *Service)) {
		t.Helper()
		store, err := persistence.Open(dir, persistence.Options{CommitWaitMax: time.Minute})
		if err != nil {
			t.Fatalf("open the store: %v", err)
		}
		s, err := Start(Options{Store: store, Directory: directory})
		if err != nil {
			t.Fatalf("Start: %v", err)
		}
		use(s)
		stop(t, s)
		if err := store.Close(); err != nil {
			t.Fatalf("close the store: %v", err)
		}
	}

	var token, login, revoked string
	var before []Credential
	session(t, func(s *Service) {
		token, _ = issued(t, s, Token, "john.doe", 0)
		login, _ = issued(t, s, Session, "mary.major", 0)
		var c Credential
		revoked, c = issued(t, s, Token, "john.doe", 0)
		mustRevoke(t, s, c)
		accepts(t, s, Token, token, "john.doe")
		before = s.Credentials(Token | Session)
	})
	session(t, func(s *Service) {
		accepts(t, s, Token, token, "john.doe")
		accepts(t, s, Session, login, "mary.major")
		refuses(t, s, Token, revoked)
	})
	session(t, func(s *Service) {
		after := s.Credentials(Token | Session)
		if len(after) != len(before) {
			t.Fatalf("got %d credentials, want %d", len(after), len(before))
		}
		for i := range after {
			if after[i].LastUsed.Before(before[i].LastUsed) {
				t.Errorf("last use of %s: got %v, want %v or later", after[i].ID, after[i].LastUsed, before[i].LastUsed)
			}
			after[i].LastUsed = before[i].LastUsed
			if after[i] != before[i] {
				t.Errorf("got %+v, want %+v", after[i], before[i])
			}
		}
	})
}
