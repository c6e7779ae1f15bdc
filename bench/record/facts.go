// Package record is what a measurement leaves: a Markdown text that begins with where it was made, and figures of
// several rounds with their spread. Where it was made is processor, system, the cost of a synced write, how busy the
// machine was, and which commit was measured, because a figure without these tells nothing.
package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Facts is what a record says about where it was made.
type Facts struct {
	At        time.Time
	Processor string
	Kernel    string
	Load      string // load average when the facts were collected
	Sync      string // what one fsync costs
	Commit    string
}

// Here says what this machine is, and how busy. What cannot be found out is "unknown".
func Here() *Facts {
	f := &Facts{
		At:        time.Now().UTC(),
		Processor: "unknown",
		Kernel:    firstLine("/proc/sys/kernel/osrelease"),
		Load:      firstLine("/proc/loadavg"),
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				f.Processor = strings.TrimSpace(value)
				break
			}
		}
	}
	return f
}

// Collect gathers the facts of Here, the commit of the folder that this program runs in,
// and what a synced write costs in dir.
func Collect(dir string) (*Facts, error) {
	f := Here()
	f.Commit = commit()
	var err error
	f.Sync, err = syncCost(dir)
	return f, err
}

// Header returns the head of a record, in Markdown: its title with the time, and the facts as a table. command is what
// was run; the rows of more, a name and a value each, come last.
func (f *Facts) Header(title, command string, more ...[2]string) string {
	rows := append([][2]string{
		{"Command", "`" + command + "`"},
		{"Commit", f.Commit},
		{"Machine", fmt.Sprintf("%s, %d cores, shared by servers and load generator", f.Processor, runtime.NumCPU())},
		{"System", fmt.Sprintf("%s/%s, kernel %s, %s", runtime.GOOS, runtime.GOARCH, f.Kernel, runtime.Version())},
		{"Write and sync of 4 KiB", f.Sync},
		{"Load average before", f.Load},
	}, more...)
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, %s\n\n| | |\n|---|---|\n", title, f.At.Format("2006-01-02 15:04 UTC"))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	return b.String()
}

func firstLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	return string(line)
}

// commit names what is measured, and says when it is not exactly that commit. Records do not
// count: otherwise each would make the next one doubtful.
func commit() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	id, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(id))
	if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ":/", ":(top,exclude)bench/results").Output(); err != nil || len(changed) > 0 {
		name += " with changes"
	}
	return name
}

// syncCost measures what it costs to make 4 KiB durable: the one figure that tells disks apart here.
func syncCost(dir string) (text string, err error) {
	name := filepath.Join(dir, "sync")
	file, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(name)) }()
	block := make([]byte, 4<<10)
	var elapsed []time.Duration
	for range 200 {
		begun := time.Now()
		if _, err := file.Write(block); err != nil {
			return "", err
		}
		if err := file.Sync(); err != nil {
			return "", err
		}
		elapsed = append(elapsed, time.Since(begun))
	}
	slices.Sort(elapsed)
	return fmt.Sprintf("p50 %d µs, p99 %d µs", elapsed[100].Microseconds(), elapsed[198].Microseconds()), nil
}

// Spread is what the rounds of a measurement gave: the least, the middle and the most.
type Spread struct {
	Least  float64 `json:"least"`
	Middle float64 `json:"median"`
	Most   float64 `json:"most"`
}

// SpreadOf returns the spread of figures. Of an even number the middle is the mean of two.
func SpreadOf(figures []float64) Spread {
	figures = slices.Sorted(slices.Values(figures))
	n := len(figures)
	if n == 0 {
		return Spread{}
	}
	return Spread{figures[0], (figures[(n-1)/2] + figures[n/2]) / 2, figures[n-1]}
}

// Text writes all three, each in the format.
func (s Spread) Text(format string) string {
	return fmt.Sprintf(format+"–"+format+"–"+format, s.Least, s.Middle, s.Most)
}
