package overload

import (
	"errors"
	"fmt"

	"troupe/bench/internal/harness"
)

func (o *outcome) line(p phase) string {
	f := &o.figures
	return fmt.Sprintf("%-6s due %6.0f/s, offered %6.0f/s, useful %6.0f/s, p50 %4.0f, p99 %4.0f ms; refused %6.0f/s, p50 %4.1f, p99 %4.0f ms; polite %3.0f %%, p99 %4.0f ms; health p99 %4.0f ms; %.2f cores, %4.0f MB, recovered in %.0f ms %s",
		p.name, f[demanded], f[offered], f[useful], f[accepted50], f[accepted99], f[refused], f[refused50], f[refused99],
		100*f[politePart], f[polite99], f[health99], f[processorCores], f[peakMB], f[recovered], harness.Counts(o.errors))
}

type column struct {
	heading string
	figure  int
	format  string
}

var tables = []struct {
	title   string
	columns []column
}{
	{"The load", []column{
		{"due /s", demanded, "%.0f"},
		{"offered /s", offered, "%.0f"},
		{"useful /s", useful, "%.0f"},
		{"of the peak", peakPart, "%.2f"},
		{"p50 ms", accepted50, "%.0f"},
		{"p99 ms", accepted99, "%.0f"},
		{"refused /s", refused, "%.0f"},
		{"refused p50 ms", refused50, "%.0f"},
		{"refused p99 ms", refused99, "%.0f"},
	}},
	{"Beside it, and after it", []column{
		{"polite user", politePart, "%.2f"},
		{"polite p99 ms", polite99, "%.0f"},
		{"health p99 ms", health99, "%.0f"},
		{"server cores", processorCores, "%.2f"},
		{"peak MB", peakMB, "%.0f"},
		{"recovered ms", recovered, "%.0f"},
	}},
}

// failures are the errors of all loads; refusals are none. Figures with errors are not recorded.
func (m *measurement) failures(rounds [][]*outcome) (err error) {
	for n, r := range rounds {
		for i, o := range r {
			if len(o.errors) > 0 {
				err = errors.Join(err, fmt.Errorf("load %s, round %d: %s", m.loads[i].name, n+1, harness.Counts(o.errors)))
			}
		}
	}
	return err
}

func (m *measurement) report(rounds [][]*outcome) string {
	var b harness.Table
	for _, t := range tables {
		heads := []string{"Load"}
		for _, c := range t.columns {
			heads = append(heads, c.heading)
		}
		b.Printf("\n## %s\n\n", t.title)
		b.Head(heads...)
		for i, p := range m.loads {
			row := []string{p.name}
			for _, c := range t.columns {
				var values []float64
				for _, r := range rounds {
					values = append(values, r[i].figures[c.figure])
				}
				row = append(row, harness.Spread(values, c.format))
			}
			b.Row(row)
		}
	}
	b.WriteString("\nEach figure is the least, the middle and the most of all rounds.\n\n")
	for i, p := range m.loads {
		b.WriteString("- " + p.name + ": " + p.what)
		found := map[string]int64{}
		for _, r := range rounds {
			for text, n := range r[i].errors {
				found[text] += n
			}
		}
		if len(found) > 0 {
			b.WriteString(". **Errors:** " + harness.Counts(found))
		}
		b.WriteString("\n")
	}
	b.Printf("\nDue is the rate of the open loop; offered is what found a free connection, because nothing is sent while all are busy. "+
		"Useful are right answers in %s, counted from when they were due; of the peak: beside the most of the round, the closed loop that found the capacity included. "+
		"p50 and p99 are those of right answers. The polite user sends %d events per second: the part that was answered in %s. "+
		"Health is the slowest of /livez on new connections, /readyz, and /metrics of the operations listener. "+
		"Recovered: when, after the load, a create and a new connection took at most %s each.\n",
		usefulMax, politeRate, usefulMax, quickMax)
	return b.String()
}
