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
	"troupe/bench/record"
)

// Table is a text with tables in Markdown.
type Table struct{ strings.Builder }

// Printf writes what stands around the tables.
func (t *Table) Printf(format string, args ...any) { fmt.Fprintf(t, format, args...) }

// Head begins a table.
func (t *Table) Head(titles ...string) {
	t.Row(titles)
	t.Printf("|%s\n", strings.Repeat("---|", len(titles)))
}

// Row writes a row. A cell is a text, a whole number, or texts that are a cell each.
func (t *Table) Row(cells ...any) {
	t.WriteString("|")
	for _, c := range cells {
		texts, several := c.([]string)
		if !several {
			texts = []string{fmt.Sprint(c)}
		}
		for _, text := range texts {
			t.WriteString(strings.TrimSuffix(" "+text, " ") + " |")
		}
	}
	t.WriteString("\n")
}

// Spread writes the least, the middle and the most of some figures.
func Spread(figures []float64, format string) string { return record.SpreadOf(figures).Text(format) }

// Ratios divides figures of the same rounds.
func Ratios(over, under []float64) (all []float64) {
	for i := range over {
		all = append(all, over[i]/under[i])
	}
	return all
}

// Milliseconds is a time as a number.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

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
