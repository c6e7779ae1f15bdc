package cputest

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWatch(t *testing.T) {
	idle := Watch()
	<-time.After(20 * time.Millisecond)
	took := idle()
	assert.False(t, took > 10*time.Millisecond && runtime.GOOS == "linux", "waiting took %v", took)
	const least = 5 * time.Millisecond
	busy, begun := Watch(), threadTime()
	for n := 0; threadTime() < begun+least; n++ {
		_ = n
	}
	assert.GreaterOrEqual(t, busy(), least, "took")
}
