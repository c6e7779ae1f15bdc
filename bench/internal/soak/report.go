package soak

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/bench/record"
	"troupe/bench/report"
)

// peaks are the most bytes that were seen.
type peaks struct{ resident, disk int64 }

func (p *peaks) raise(q peaks) {
	p.resident, p.disk = max(p.resident, q.resident), max(p.disk, q.disk)
}

// row is an interval with its peaks.
type row struct {
	load.Interval
	peaks
}

// watcher looks at the server once a second.
type watcher struct {
	errs io.Writer // for each row as it comes
	stop func()

	mu struct {
		sync.Mutex
		now  peaks // since the last row
		rows []row
	}
}

func watchOver(pid int, disk string) *watcher {
	w := &watcher{errs: io.Discard}
	over, ended := make(chan struct{}), make(chan struct{})
	w.stop = sync.OnceFunc(func() { close(over); <-ended })
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			usage, _ := vfs.Default.GetDiskUsage(disk) // zero after an error
			seen := peaks{process.ResidentBytes(pid), int64(usage.UsedBytes)}
			w.mu.Lock()
			w.mu.now.raise(seen)
			w.mu.Unlock()
			select {
			case <-ticker.C:
			case <-over:
				return
			}
		}
	}()
	return w
}

func (w *watcher) tick(i *load.Interval) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := row{*i, w.mu.now}
	w.mu.rows, w.mu.now = append(w.mu.rows, r), peaks{}
	fmt.Fprintf(w.errs, "%v\n", r.cells())
}

func (r *row) cells() []string {
	of := func(bytes int64) string { return fmt.Sprint(bytes >> 20) }
	return []string{
		fmt.Sprintf("%.0f–%.0f", r.BeganSeconds/60, r.EndedSeconds/60), fmt.Sprintf("%.0f", r.OperationsPerSecond),
		fmt.Sprintf("%.2f", r.Latency.P50Ms), fmt.Sprintf("%.2f", r.Latency.P99Ms), fmt.Sprintf("%.1f", r.Latency.P999Ms), fmt.Sprintf("%.0f", r.Latency.MaxMs),
		fmt.Sprint(r.Shed), fmt.Sprint(r.Errors), fmt.Sprintf("%.2f", report.Known(r.ServerCPUCores)), of(r.resident), of(r.disk),
	}
}

// drift is the middle p99 of the second half beside that of the first.
func drift(rows []row) (first, second float64) {
	var halves [2][]float64
	for i := range rows {
		half := 2 * i / len(rows)
		halves[half] = append(halves[half], rows[i].Latency.P99Ms)
	}
	return record.SpreadOf(halves[0]).Middle, record.SpreadOf(halves[1]).Middle
}

// report writes the table. What came after the window, a few late answers, has no row.
func (w *watcher) report(result *load.Result, groupPeak, memory int64) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b harness.Table
	b.Printf("\n")
	b.Head("Minutes", "answered /s", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "refused", "errors", "server cores", "resident MiB", "disk MiB")
	var all peaks
	rows := w.mu.rows
	for len(rows) > 0 && rows[len(rows)-1].BeganSeconds >= result.DurationSeconds {
		rows = rows[:len(rows)-1]
	}
	for i := range rows {
		all.raise(rows[i].peaks)
		b.Row(rows[i].cells())
	}
	first, second := drift(rows)
	b.Printf("\nDrift of p99: %.2f ms in the first half, %.2f ms in the second (the middle of each): %.2f times.\n", first, second, second/max(first, 0.001))
	b.Printf("Whole: %d answered, p50 %.2f ms, p99 %.2f ms; %d refused, %d missed, %d errors; the longest time without an answer was %.3f s.\n",
		result.Operations, result.Latency.P50Ms, result.Latency.P99Ms, result.Shed, result.Missed, result.ErrorsTotal, result.LongestGapSeconds)
	b.Printf("Peaks: %d MiB resident, %d MiB of %d in the control group with the cache of files, %d MiB of disk.\n",
		all.resident>>20, groupPeak>>20, memory, all.disk>>20)
	return b.String()
}
