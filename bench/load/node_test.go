package load

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/leader"
)

const nodeSlots = 4

// fakeNodes are a cluster of two nodes, of which each leads every other slot.
type fakeNodes struct {
	servers [2]*httptest.Server

	mu      sync.Mutex
	created [2]int // guarded by mu, as is the rest
	events  [2]int
	direct  int // events that came to their leader
}

func startFakeNodes(t *testing.T) *fakeNodes {
	f := &fakeNodes{}
	for i := range f.servers {
		f.servers[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.answer(i, w, r) }))
		t.Cleanup(f.servers[i].Close)
	}
	return f
}

func (f *fakeNodes) answer(node int, w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	id, at := ulid.Make().String(), "draft"
	_, text, isEvent := strings.Cut(string(body), string(instanceKey))
	if isEvent {
		id, at = readEvent(text)
		f.events[node]++
	} else {
		f.created[node]++
	}
	slot, _ := leader.SlotOf(id, nodeSlots)
	if isEvent && slot%2 == node {
		f.direct++
	}
	name := func(i int) string { return fmt.Sprint("node-", i) }
	w.Header()[leader.Header] = []string{leader.Place{Node: name(slot % 2), Self: name(node), First: slot, Last: slot, Slots: nodeSlots}.String()}
	writeInstance(w, id, at)
}

func (f *fakeNodes) worker(t *testing.T, instances int) *worker {
	t.Helper()
	o := Options{Addr: f.servers[0].Listener.Addr().String(), Others: []string{f.servers[1].Listener.Addr().String()}}
	o.EnsureDefaults()
	w := newWorker(&o, 0, new(atomic.Int64), new(gap))
	t.Cleanup(func() { (&run{workers: []*worker{w}}).close() })
	require.NoError(t, w.prepare(t.Context(), instances))
	return w
}

// send sends so many events.
func (f *fakeNodes) send(t *testing.T, w *worker, n int) {
	t.Helper()
	f.mu.Lock()
	f.events, f.direct = [2]int{}, 0
	f.mu.Unlock()
	win := window{begin: time.Now(), end: time.Now().Add(time.Hour)}
	for range n {
		require.NoError(t, w.once(t.Context(), win, time.Now()))
	}
}

// TestLeadersAreAsked: creates go to each node in turn, and events to the leader as soon as answers have told who that is.
func TestLeadersAreAsked(t *testing.T) {
	const instances = 40
	f := startFakeNodes(t)
	w := f.worker(t, instances)
	assert.Equal(t, [2]int{instances / 2, instances / 2}, f.created)
	f.send(t, w, instances)
	f.send(t, w, instances)
	assert.Equal(t, instances, f.direct, "events went to their leader, of %v", f.events)
	assert.True(t, f.events[0] > 0 && f.events[1] > 0, "got %v", f.events)
}

// TestAnotherNodeIsAsked when one is gone: each attempt to reach it is an error, and the load goes on.
func TestAnotherNodeIsAsked(t *testing.T) {
	const instances = 40
	f := startFakeNodes(t)
	w := f.worker(t, instances)
	f.send(t, w, instances)
	f.servers[1].Close()
	f.send(t, w, instances)
	assert.True(t, f.events[0] >= instances-2 && f.events[1] == 0, "got %v", f.events)
	result := summarize([]*worker{w}, time.Hour)
	assert.True(t, result.ErrorsTotal >= 1 && result.ErrorsTotal <= 4, "got errors %v", result.Errors)
}
