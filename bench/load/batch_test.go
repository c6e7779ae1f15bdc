package load

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestBatches(t *testing.T) {
	for _, c := range []struct {
		name, body string
		done       int64
		fault      string
		count      int64
		shed       int64
	}{
		{"all", `{"results":[{"status":200,"workflowId":"w","instanceId":"a","sequence":2},{"status":200,"workflowId":"w","instanceId":"b","sequence":2}]}`, 2, "", 0, 0},
		{"one refused", `{"results":[{"status":409,"error":"Conflict","message":"no"},{"status":200,"workflowId":"w","instanceId":"b","sequence":2}]}`, 1, "event: status 409 in a batch", 1, 0},
		{"all refused", `{"results":[{"status":503,"error":"Busy"},{"status":503,"error":"Busy"}]}`, 0, "", 0, 2},
		{"one too busy, one failed", `{"results":[{"status":503,"error":"Busy"},{"status":500,"error":"Internal"}]}`, 0, "event: status 500 in a batch", 1, 1},
		{"one failed, too few", `{"results":[{"status":500,"error":"Internal"}]}`, 0, "event: status 500 in a batch", 2, 0},
		{"out of order", `{"results":[{"status":200,"workflowId":"w","instanceId":"b"},{"status":200,"workflowId":"w","instanceId":"a"}]}`, 0, "event: a result is about something else", 2, 0},
		{"too few", `{"results":[{"status":200,"workflowId":"w","instanceId":"a"}]}`, 1, "event: the answer has too few results", 1, 0},
		{"too many", `{"results":[{"status":200,"instanceId":"a"},{"status":200,"instanceId":"b"},{"status":200,"instanceId":"c"}]}`, 2, "event: the answer has too many results", 1, 0},
		{"something else", `{"error":"NotFound"}`, 0, "event: the answer has no results", 2, 0},
		{"no status", `{"results":[{"status":null},{"status":200}]}`, 0, "event: the answer has a result without a status", 2, 0},
	} {
		s := readBatch([]byte(c.body), []batched{{subject: &subject{id: "a"}}, {subject: &subject{id: "b"}}})
		text, count := "", int64(0)
		if f := s.fault; f != nil {
			text, count = f.Error(), f.count
		}
		assert.True(t, s.operations == c.done && s.shed == c.shed && text == c.fault && count == c.count,
			"%s: got %d, %q, %d, %d, want %d, %q, %d, %d", c.name, s.operations, text, count, s.shed, c.done, c.fault, c.count, c.shed)
	}
}

// TestABatchThatIsRefusedLeavesInstancesWhereTheyAre: the next event of an instance is one
// that its node has, whether whole batches are refused or some of their events.
func TestABatchThatIsRefusedLeavesInstancesWhereTheyAre(t *testing.T) {
	for _, c := range []struct {
		name             string
		instances, batch int
		whole, one       int64 // every so many is refused; 0: none
		shed             int64
	}{
		{"whole batches with instances that are there twice", 3, 5, 2, 0, 50},
		{"events", 4, 3, 0, 4, 15},
	} {
		f := newFake(t)
		f.whole = func(w http.ResponseWriter, n int64) bool {
			if c.whole == 0 || n%c.whole != 0 {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		at, sent := map[string]string{}, int64(0)
		f.batch = func(_ int64, _ int, id, node string) string {
			if sent++; c.one > 0 && sent%c.one == 0 {
				return `{"status":503,"error":"Busy","message":"no"}`
			}
			assert.NotEqual(t, node, cmp.Or(at[id], "draft"), "%s: the event %d leads, %s", c.name, sent, id)
			at[id] = node
			return ""
		}
		w := f.worker(c.instances)
		for range 20 {
			s := w.sendBatch(c.batch)
			w.tally.record(&s, time.Millisecond, part{true, true})
		}
		got := w.tally.shed.Summary(time.Second).Count
		assert.True(t, got == c.shed && w.tally.operations == int64(20*c.batch)-c.shed && len(w.tally.errors.of) <= 0,
			"%s: got %d refused and %d done, want %d refused of %d; errors %v", c.name, got, w.tally.operations, c.shed, 20*c.batch, w.tally.errors.of)
	}
}

// TestWhatABatchLeavesUnknown: where an instance is after an error nobody knows, but of the
// others it is known; and a batch without an answer is an error for each event.
func TestWhatABatchLeavesUnknown(t *testing.T) {
	f := newFake(t)
	f.whole = func(_ http.ResponseWriter, n int64) bool {
		if n == 2 {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	f.batch = func(_ int64, i int, _, _ string) string {
		if i == 1 {
			return `{"status":500,"error":"Internal","message":"no"}`
		}
		return ""
	}
	w := f.worker(5)
	for _, want := range []string{"true false true true true, 1 errors", "false false true false false, 4 errors"} {
		s := w.sendBatch(3)
		w.tally.record(&s, time.Millisecond, part{true, true})
		got := ""
		for i := range w.subjects {
			got += fmt.Sprint(w.subjects[i].sure, " ")
		}
		got = fmt.Sprintf("%s, %d errors", strings.TrimSpace(got), total(w.tally.errors.of))
		assert.Equal(t, want, got)
	}
}

// TestABatchCountsItsEvents answers batches of three, of which the second event of the fifth is refused.
func TestABatchCountsItsEvents(t *testing.T) {
	inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
		f := newFake(t)
		f.batch = func(n int64, i int, _, _ string) string {
			if n == 5 && i == 1 {
				return `{"status":409,"error":"Conflict","message":"no"}`
			}
			return ""
		}
		result := f.run(Options{Connections: 1, Instances: 4, Batch: 3, Duration: window})
		n := result.All.Count
		assert.True(t, result.Operations <= 3*n && result.Operations >= 3*n-1 && result.ErrorsTotal <= 1 && (n <= 5 || result.Errors["event: status 409 in a batch"] == 1),
			"got %d events in %d requests, errors %v", result.Operations, n, result.Errors)
		return n > 5
	})
}
