package cputest

import (
	"runtime"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	idle := Watch()
	<-time.After(20 * time.Millisecond)
	if took := idle(); took > 10*time.Millisecond && runtime.GOOS == "linux" {
		t.Errorf("waiting took %v", took)
	}
	const least = 5 * time.Millisecond
	busy, begun := Watch(), threadTime()
	for n := 0; threadTime() < begun+least; n++ {
		_ = n
	}
	if took := busy(); took < least {
		t.Errorf("took %v, want at least %v", took, least)
	}
}
