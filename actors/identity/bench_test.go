package identity

import (
	"context"
	"fmt"
	"testing"

	"troupe/persistence"
	"troupe/persistence/storetest"
)

// BenchmarkAuthenticate is part of every request. Its budget is in
// actors/identity/DESIGN.md, "Budgets".
func BenchmarkAuthenticate(b *testing.B) {
	for _, credentials := range []int{1, 100_000} {
		s := open(b, newMemory(), Options{})
		var known string
		for range credentials {
			known, _ = issued(b, s, Token, "john.doe", 0)
		}
		missing := "tok_aaaaaaaaaaaaaaaa" + known[idChars:]
		b.Run(fmt.Sprintf("known/of=%d", credentials), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Authenticate(Token, known); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("unknown/of=%d", credentials), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Authenticate(Token, missing); err == nil {
					b.Fatal("an unknown token signed in")
				}
			}
		})
	}
}

// BenchmarkAuthenticateOnAFollower reads the credential's row for each request.
func BenchmarkAuthenticateOnAFollower(b *testing.B) {
	store, err := storetest.NewDisk().Open(persistence.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	s := open(b, storeLedger{store}, Options{})
	var known string
	for range 10_000 {
		known, _ = issued(b, s, Token, "john.doe", 0)
	}
	r, err := StartReplicated(ReplicatedOptions{
		Options: Options{Directory: parse(b, staff), PasswordCost: cheap},
		Store:   store, Fresh: func() bool { return true }, Current: func(context.Context) error { return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.Stop(b.Context()) }()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Authenticate(Token, known); err != nil {
			b.Fatal(err)
		}
	}
}
