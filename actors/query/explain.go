package query

import (
	"slices"
	"time"

	"troupe/statemachine"
	"troupe/statemachine/filter"
)

func (q *query) explained() *Explain {
	if q.right == statemachine.Granted {
		q.explain.Milliseconds = float64(time.Since(q.begun).Microseconds()) / 1000
		return &q.explain
	}
	e := &Explain{Matched: q.explain.Matched, Considered: []Considered{}}
	names := q.usable(q.filter)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		e.Considered = append(e.Considered, Considered{Index: name})
	}
	return e
}

func (q *query) usable(f *filter.Filter) (names []string) {
	for _, a := range q.accesses(f) {
		names = append(names, a.index)
	}
	for _, branches := range f.Alternatives() {
		for _, b := range branches {
			names = append(names, q.usable(b)...)
		}
	}
	return names
}
