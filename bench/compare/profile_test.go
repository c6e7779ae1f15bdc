package main

import (
	"testing"

	"github.com/google/pprof/profile"
)

// TestPartsAreAskedInOrder: what serves others is counted where it happens, and the rest
// by who asked for it.
func TestPartsAreAskedInOrder(t *testing.T) {
	const handler, step = "troupe/gateway.(*exchange).run", "troupe/statemachine.(*Definition).Step"
	p := &profile.Profile{}
	want := map[string]float64{}
	cases := []struct {
		part  string
		stack []string // the innermost first
	}{
		{"garbage collection", []string{"runtime.gcAssistAlloc", "runtime.mallocgc", step, handler, "net/http.(*conn).serve"}},
		{"allocation", []string{"runtime.mallocgc", step, handler, "net/http.(*conn).serve"}},
		{"step of the statechart", []string{step, handler, "net/http.(*conn).serve"}},
		{"handler, the rest", []string{handler, "net/http.(*conn).serve"}},
		{"net/http: the rest", []string{"net/http.(*conn).serve"}},
		{"applier and committer", []string{"runtime.memmove", "troupe/persistence.(*group).add", "troupe/persistence.(*Store).applyLoop"}},
		{"batch and commit pipeline", []string{"github.com/cockroachdb/pebble/v2.(*Batch).Apply", "troupe/persistence.(*group).add", "troupe/persistence.(*Store).applyLoop"}},
		{"actor and mailbox", []string{"sync.(*Mutex).Lock", "troupe/actors/internal/mailbox.(*Mailbox).process"}},
		{"everything else", []string{"main.main"}},
		{"everything else", nil},
		{"log: write and sync", []string{"syscall.fdatasync", "github.com/cockroachdb/pebble/v2/vfs.(*syncingFile).Sync", "github.com/cockroachdb/pebble/v2/record.(*LogWriter).flushLoop"}},
	}
	for _, c := range cases {
		s := &profile.Sample{Value: []int64{1, 10}}
		for _, f := range c.stack {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: f}}}})
		}
		p.Sample = append(p.Sample, s)
		want[c.part] += 10
	}
	for i, share := range sharesOf(p) {
		if want := want[parts[i].name] / float64(10*len(cases)); share != want {
			t.Errorf("%s: got a share of %v, want %v", parts[i].name, share, want)
		}
	}
}
