package harness

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"troupe/bench/load"
)

// Observed is what some requests got. Any goroutine may use it.
type Observed struct {
	mu      sync.Mutex
	latency load.Histogram
	failed  map[string]int64
}

// Outcome is what came of them.
type Outcome struct {
	load.Summary
	Errors map[string]int64 `json:"errors,omitempty"`
}

// Answered counts a right answer.
func (o *Observed) Answered(took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.latency.Record(took)
}

// Count counts anything else.
func (o *Observed) Count(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = map[string]int64{}
	}
	o.failed[what]++
}

// Outcome is what was counted until now, in a window of that length.
func (o *Observed) Outcome(window time.Duration) *Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &Outcome{o.latency.Summary(window), maps.Clone(o.failed)}
}

// Failed is how many requests had no right answer.
func (o *Outcome) Failed() (n int64) {
	for _, count := range o.Errors {
		n += count
	}
	return n
}

// Counts writes numbers by text, the most first.
func Counts(of map[string]int64) string {
	var parts []string
	for _, text := range slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), strings.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%d %s", of[text], text))
	}
	return strings.Join(parts, ", ")
}

// RecoverMax is how long a server may take to recover.
const RecoverMax = 15 * time.Second

// Recovered is how long after now everything is well again; RecoverMax when it is not.
func Recovered(ctx context.Context, well func(context.Context) bool) time.Duration {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, RecoverMax)
	defer cancel()
	for ctx.Err() == nil {
		if well(ctx) {
			return time.Since(begun)
		}
		load.Sleep(ctx, 10*time.Millisecond)
	}
	return RecoverMax
}
