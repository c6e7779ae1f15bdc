package identity

import (
	"fmt"
	"testing"
)

// BenchmarkAuthenticate is part of every request. Its budget is in
// actors/identity/DESIGN.md, "Budgets".
func BenchmarkAuthenticate(b *testing.B) {
	for _, credentials := range []int{1, 100_000} {
		s, err := start(Options{Directory: parse(b, staff)}, newMemory())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { stop(b, s) })
		var known string
		for range credentials {
			known, _, err = s.CreateToken(b.Context(), CreateCredential{User: "john.doe"})
			if err != nil {
				b.Fatal(err)
			}
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
