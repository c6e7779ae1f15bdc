//go:build !linux

package load

import "time"

// sleep waits for d, about a millisecond longer than asked.
func sleep(d time.Duration) { <-time.After(d) }
