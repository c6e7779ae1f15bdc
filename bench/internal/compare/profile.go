package compare

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"troupe/bench/process"
)

type part struct {
	name string
	// A sample belongs to the part when one of its frames begins with one of these, and to no part before it. In those
	// with /... the frame is of a package below the folder, and its name has what follows: rooms of ours are rebuilt.
	frames []string
}

// parts are asked in this order, so that what serves others, such as the collector and
// the scheduler, is counted where it happens, and only the rest by who asked for it.
var parts = []part{
	{"garbage collection", []string{
		"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcStart",
		"runtime.gcMarkDone", "runtime.gcMarkTermination", "runtime.deductSweepCredit", "runtime.gcWriteBarrier", "runtime.wbBufFlush",
	}},
	{"log: write and sync", []string{"github.com/cockroachdb/pebble/v2/record.(*LogWriter).flushLoop"}},
	{"flush and compaction", []string{
		"github.com/cockroachdb/pebble/v2.(*DB).flush", "github.com/cockroachdb/pebble/v2.(*DB).compact",
		"github.com/cockroachdb/pebble/v2/sstable", "github.com/cockroachdb/pebble/v2/vfs.(*syncingFile)",
	}},
	{"stacks that grow", []string{"runtime.newstack", "runtime.morestack"}},
	{"scheduler", []string{
		"runtime.schedule", "runtime.findRunnable", "runtime.park_m", "runtime.goready", "runtime.ready", "runtime.wakep", "runtime.mstart",
		"runtime.newproc", "runtime.goexit0", "runtime.gosched_m", "runtime.sysmon", "runtime.startm", "runtime.goschedImpl", "runtime.netpoll",
	}},
	{"allocation", []string{"runtime.mallocgc", "runtime.growslice"}},
	{"socket: watch for its end", []string{"net/http.(*connReader).backgroundRead", "net/http.(*connReader).startBackgroundRead", "net/http.(*connReader).abortPendingRead"}},
	{"socket: deadlines", []string{"net.(*conn).SetReadDeadline", "net.(*conn).SetWriteDeadline", "net.(*conn).SetDeadline"}},
	{"socket: write", []string{"net.(*conn).Write"}},
	{"socket: read", []string{"net.(*conn).Read"}},
	{"memtable", []string{"github.com/cockroachdb/pebble/v2.(*memTable).apply"}},
	{"batch and commit pipeline", []string{"github.com/cockroachdb/pebble/v2."}},
	{"step of the statechart", []string{"troupe/statemachine/...Definition).Step"}},
	{"rights", []string{"troupe/statemachine/...MaySend", "troupe/statemachine/...SendRight", "troupe/statemachine/...ReadRight"}},
	{"reading the record", []string{"troupe/actors/...ensureLoaded", "troupe/actors/...Shards).acquire"}},
	{"encoding of record, entry and rows", []string{"troupe/actors/...Actor).commit"}},
	{"applier and committer", []string{"troupe/persistence/..."}},
	{"actor and mailbox", []string{"github.com/asynkron/protoactor-go", "troupe/actors/...mailbox", "troupe/actors/...Actor)", "troupe/actors/...Shards)", "troupe/actors/...Router)"}},
	{"credential", []string{"troupe/actors/identity/...", "troupe/gateway/...authenticate"}},
	{"body", []string{"troupe/gateway/...ReadBody", "troupe/gateway/...parse", "troupe/gateway/...itemSource)", "troupe/bench/internal/ceiling.decode", "encoding/json"}},
	{"net/http: read the request", []string{"net/http.(*conn).readRequest", "net/http.(*body)"}},
	{"handler, the rest", []string{"troupe/gateway/...", "troupe/bench/internal/ceiling."}},
	{"net/http: the answer's head and end", []string{"net/http.(*response)", "net/http.(*chunkWriter)"}},
	{"net/http: the rest", []string{"net/http."}},
	{"everything else", []string{""}},
}

// costs is processor time in microseconds for each answered request, by part.
type costs []float64

// profileTarget takes a profile of a target for a time, and says what share of its processor time each part had.
func profileTarget(ctx context.Context, t *target, length time.Duration) (costs, error) {
	ctx, cancel := context.WithTimeout(ctx, length+30*time.Second)
	defer cancel()
	text, err := process.Get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", t.admin, max(1, int(length/time.Second))))
	if err != nil {
		return nil, fmt.Errorf("profile of %s: %w", t.name, err)
	}
	p, err := profile.ParseData(text)
	if err != nil {
		return nil, fmt.Errorf("profile of %s: %w", t.name, err)
	}
	return sharesOf(p), nil
}

// sharesOf sums the samples of a profile by part; all together are 1.
func sharesOf(p *profile.Profile) costs {
	shares := make(costs, len(parts))
	var sum float64
	for _, s := range p.Sample {
		value := float64(s.Value[len(s.Value)-1])
		shares[partOf(s)] += value
		sum += value
	}
	for i := range shares {
		shares[i] /= max(1, sum)
	}
	return shares
}

func partOf(s *profile.Sample) int {
	for i := range parts {
		if hasFrame(s, parts[i].frames) {
			return i
		}
	}
	return len(parts) - 1
}

func hasFrame(s *profile.Sample, prefixes []string) bool {
	for _, l := range s.Location {
		for _, line := range l.Line {
			for _, p := range prefixes {
				if isOf(line.Function.Name, p) {
					return true
				}
			}
		}
	}
	return false
}

// isOf reports whether a function is one that the frames of a part speak of.
func isOf(function, frame string) bool {
	folder, name, below := strings.Cut(frame, "/...")
	rest, begins := strings.CutPrefix(function, folder)
	return begins && (!below || strings.Contains(rest, name))
}
