package identity

import (
	"fmt"
	"testing"
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
