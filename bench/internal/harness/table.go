package harness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"troupe/bench/record"
	"troupe/bench/report"
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

// Figure writes the spread of a figure of some runs.
func Figure(runs []*report.Run, of func(*report.Run) float64, format string) string {
	var figures []float64
	for _, r := range runs {
		figures = append(figures, of(r))
	}
	return Spread(figures, format)
}

// Milliseconds is a time as a number.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

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
