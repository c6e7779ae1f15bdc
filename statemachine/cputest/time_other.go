//go:build !linux

package cputest

import "time"

var begun = time.Now()

// threadTime is the clock's time: there is none of one thread.
func threadTime() time.Duration { return time.Since(begun) }
