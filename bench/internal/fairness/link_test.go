package fairness

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestALinkHasItsBytesASecond each way, for all connections together.
func TestALinkHasItsBytesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const megabits = 8 // a million bytes a second
		over := newLink(megabits)
		text := strings.Repeat("x", 1_000_000+linkBurst)
		begun := time.Now()
		for range 2 {
			here, there := net.Pipe()
			got := make(chan []byte)
			go func() {
				all, _ := io.ReadAll(there)
				got <- all
			}()
			c := over.carry(here)
			n, err := io.WriteString(c, text)
			require.True(t, n == len(text) && err == nil, "sent %d, %v", n, err)
			_ = c.Close()
			assert.Equal(t, string([]byte(text)), string(<-got), "something else has come")
		}
		const want = 2*time.Second + linkBurst*time.Microsecond // a burst goes at once
		took := time.Since(begun)
		assert.LessOrEqual(t, (took - want).Abs(), time.Millisecond, "it took %s, want %s", took, want)
		here, there := net.Pipe()
		go func() {
			_, _ = io.WriteString(there, text)
			_ = there.Close()
		}()
		begun = time.Now()
		all, err := io.ReadAll(over.carry(here))
		assert.True(t, len(all) == len(text) && err == nil, "read %d, %v", len(all), err)
		took = time.Since(begun)
		assert.LessOrEqual(t, (took - time.Second).Abs(), time.Millisecond, "the way back took %s, want a second", took)
	})
}
