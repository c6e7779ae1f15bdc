// Package guard lets the goroutines of the service go on after a panic: Loop calls again after a pause, Try returns
// ErrPanicked. It is for goroutines whose state in memory can be made again from the store. One that alone knows what is
// not durable yet has no guard: a panic there ends the process, and the next start reads what is there
// (actors/doc.go, "Beside the actors").
package guard

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// ErrPanicked is the error of what panicked; the log has more.
var ErrPanicked = errors.New("panicked")

const (
	pauseMin = time.Second // The pause before do is called again doubles from pauseMin to pauseMax
	pauseMax = time.Minute
)

var panics atomic.Int64

// Panics is how often something panicked since the start of the process.
func Panics() int64 { return panics.Load() }

// Loop calls do, and again after each panic, until do returns or done is closed.
func Loop(done <-chan struct{}, log zerolog.Logger, name string, do func()) {
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		begun := time.Now()
		if Try(log, name, do) == nil {
			return
		}
		if time.Since(begun) >= pauseMax {
			pause = pauseMin
		}
		select {
		case <-time.After(pause):
		case <-done:
			return
		}
	}
}

// Try calls do. After a panic it returns ErrPanicked.
func Try(log zerolog.Logger, name string, do func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			panics.Add(1)
			log.Error().Str("goroutine", name).Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).
				Msg("a goroutine of the service panicked; it goes on")
			err = ErrPanicked
		}
	}()
	do()
	return nil
}
