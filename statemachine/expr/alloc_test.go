//go:build !race

package expr

import "testing"

// TestAGuardReadsNoMoreThanItNeeds holds the budget of the hot path. With the race
// detector, pools drop what they are given.
func TestAGuardReadsNoMoreThanItNeeds(t *testing.T) {
	e, s := newEnv(t), sample(t)
	for src, most := range map[string]float64{
		`svcPublic.amount <= svcPrivate.autoLimit`: 2, // two ints
		`user.id != svcPublic.requester`:           3, // two texts, one of them copied
		`"manager" in user.roles`:                  1,
		`In("payment.paid") || true`:               0,
	} {
		p, err := e.CompileBool(src)
		if err != nil {
			t.Fatal(err)
		}
		got := testing.AllocsPerRun(200, func() {
			if _, err := p.Bool(s); err != nil {
				t.Fatal(err)
			}
		})
		if got > most {
			t.Errorf("%s: got %v allocations, want at most %v", src, got, most)
		}
	}
}
