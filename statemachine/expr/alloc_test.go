//go:build !race

package expr

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAGuardReadsNoMoreThanItNeeds holds the budget of the hot path. With the race detector, pools drop what they are given.
func TestAGuardReadsNoMoreThanItNeeds(t *testing.T) {
	e, s := newEnv(t), sample(t)
	for src, most := range map[string]float64{
		`svcPublic.amount <= svcPrivate.autoLimit`: 2, // two ints
		`user.id != svcPublic.requester`:           3, // two texts, one of them copied
		`"manager" in user.roles`:                  1,
		`In("payment.paid") || true`:               0,
	} {
		p, err := e.CompileBool(src)
		require.NoError(t, err)
		got := testing.AllocsPerRun(200, func() {
			if _, err := p.Bool(s); err != nil {
				t.Fatal(err)
			}
		})
		assert.LessOrEqual(t, got, most, src)
	}
}
