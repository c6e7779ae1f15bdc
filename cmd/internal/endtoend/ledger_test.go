package endtoend

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/wiretest"
)

// promise is one request under a key, and what the program promised by its
// answer.
type promise struct {
	// What is asked is written once.
	key, instance, body string // instance is "" for a create
	least               int    // entries that were acknowledged or shown before it was asked
	begun               time.Time

	// The rest is guarded by the ledger's mutex.
	acked    bool
	made     string // for a create: the instance
	position int    // entries of the history in the answer
	sum      [32]byte
	tries    int // without an answer
}

// ledger is what was asked and what was acknowledged. Any number of workers
// write into it.
type ledger struct {
	mu struct {
		sync.Mutex
		promises  map[string]*promise // by key
		events    map[string][]*promise
		created   map[string]*promise // by instance
		acked     map[string]int      // by instance: the most entries that were acknowledged
		shown     map[string]sight    // by instance: the most that was shown
		open      []string            // instances that get events
		touched   map[string]bool     // instances asked since the last check
		recent    []*promise          // acknowledged since the last check
		acks      int
		last      time.Time     // of the last acknowledgement
		gap       time.Duration // the longest time without one
		slowest   time.Duration // that a request took with all its tries
		unknown   int           // requests that stayed without an answer, each once
		looks     int           // answers of readers
		violation []string
	}
}

func newLedger() *ledger {
	l := &ledger{}
	l.mu.promises, l.mu.touched = map[string]*promise{}, map[string]bool{}
	l.mu.events, l.mu.created = map[string][]*promise{}, map[string]*promise{}
	l.mu.acked, l.mu.shown = map[string]int{}, map[string]sight{}
	return l
}

const (
	openInstances = 16 // that get events at a time
	eventsMax     = 60 // of an instance, so that answers stay small
)

// promise notes a request before it is sent for the first time.
func (l *ledger) promise(key, instance, body string) *promise {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &promise{key: key, instance: instance, body: body, least: max(l.mu.acked[instance], l.mu.shown[instance].entries), begun: time.Now()}
	l.mu.promises[key] = p
	if instance != "" {
		l.mu.events[instance] = append(l.mu.events[instance], p)
		l.mu.touched[instance] = true
	}
	return p
}

// openInstance picks an instance to send an event to, "" when there are too few.
func (l *ledger) openInstance(random *rand.Rand) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.open = slices.DeleteFunc(l.mu.open, func(id string) bool { return len(l.mu.events[id]) >= eventsMax })
	if len(l.mu.open) < openInstances {
		return ""
	}
	return l.mu.open[random.IntN(len(l.mu.open))]
}

func (l *ledger) unanswered(p *promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.tries++; p.tries == 1 {
		l.mu.unknown++
	}
}

func (l *ledger) answered(p *promise, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, err := a.ReadRecord()
	if err != nil {
		l.violatedLocked("%s: %v", p.key, err)
		return
	}
	p.sum = sumOf(a)
	l.ackedLocked(p, len(r.History))
	l.mu.recent = append(l.mu.recent, p)
	l.mu.touched[r.ID] = true
	l.mu.acked[r.ID] = max(l.mu.acked[r.ID], p.position)
	if p.instance == "" {
		p.made = r.ID
		l.mu.created[r.ID] = p
		l.mu.open = append(l.mu.open, r.ID)
		return
	}
	if last := r.History[len(r.History)-1].TransitionEvent; r.ID != p.instance || last != "e."+p.key {
		l.violatedLocked("%s was answered with the state after %s of %s", p.key, last, r.ID)
	}
}

// ackedLocked notes an acknowledgement: what was acknowledged or shown before it was asked has come before.
func (l *ledger) ackedLocked(p *promise, position int) {
	p.acked, p.position = true, position
	if position <= p.least {
		l.violatedLocked("%s stands at %d of %s, and %d entries were there before it was asked", p.key, position, p.instance, p.least)
	}
	now := time.Now()
	l.mu.gap, l.mu.slowest, l.mu.last = max(l.mu.gap, now.Sub(l.mu.last)), max(l.mu.slowest, now.Sub(p.begun)), now
	l.mu.acks++
}

func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.last, l.mu.gap, l.mu.slowest = time.Now(), 0, 0
}

func (l *ledger) times() (gap, slowest time.Duration, acks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.mu.gap, time.Since(l.mu.last)), l.mu.slowest, l.mu.acks
}

func (l *ledger) promised(p *promise, sequence int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ackedLocked(p, sequence)
	l.mu.recent = append(l.mu.recent, p)
	l.mu.touched[p.instance] = true
	l.mu.acked[p.instance] = max(l.mu.acked[p.instance], sequence)
}

// violated notes something that must not happen, besides losses.
func (l *ledger) violated(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violatedLocked(format, args...)
}

func (l *ledger) violatedLocked(format string, args ...any) {
	l.mu.violation = append(l.mu.violation, fmt.Sprintf(format, args...))
}

func (l *ledger) report(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	const shown = 10
	for _, v := range l.mu.violation[:min(shown, len(l.mu.violation))] {
		t.Errorf("violation: %s", v)
	}
	more := len(l.mu.violation) - shown
	assert.LessOrEqual(t, more, 0)
}

// sumOf stands for all that a repeat must have in common with the first answer.
func sumOf(a answer) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %s %s", a.Status, a.Header.Get("ETag"), a.Body))
}

// loadData is svcPublic of an instance of loadFlow.
type loadData struct {
	Key, Last string
	Count     int
}

func loadDataOf(r *wiretest.Record) (d loadData) {
	_ = json.Unmarshal([]byte(r.Public), &d) // what is none has no key
	return d
}

// sight is what a reader saw of an instance.
type sight struct {
	entries int    // of the history
	last    string // the last one's event
}

func sightOfInstance(a answer) (sight, error) {
	r, err := a.ReadRecord()
	if err != nil {
		return sight{}, err
	}
	return sight{len(r.History), r.History[len(r.History)-1].TransitionEvent}, nil
}

// sightOfList reads a list that has one instance.
func sightOfList(a answer) (sight, error) {
	var body struct{ Instances []wiretest.Record }
	if a.Status != http.StatusOK {
		return sight{}, fmt.Errorf("the status is %d", a.Status)
	}
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
		return sight{}, err
	}
	if len(body.Instances) != 1 {
		return sight{}, fmt.Errorf("it has %d instances", len(body.Instances))
	}
	public := loadDataOf(&body.Instances[0])
	if public.Count == 0 {
		return sight{entries: 1}, nil
	}
	return sight{public.Count + 1, "e." + public.Last}, nil
}

func (l *ledger) leastEntries(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.mu.acked[id], l.mu.shown[id].entries)
}

func (l *ledger) shown(id string, s sight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.looks++
	l.mu.touched[id] = true
	if s.entries > l.mu.shown[id].entries {
		l.mu.shown[id] = s
	}
}

// findings are what a check found.
type findings struct {
	instances int
	lost      []string // acknowledged, and not there or not at its place
	doubled   []string // applied more than once
	broken    []string // history or record not whole
}

func (f *findings) add(other findings) {
	f.instances += other.instances
	f.lost = append(f.lost, other.lost...)
	f.doubled = append(f.doubled, other.doubled...)
	f.broken = append(f.broken, other.broken...)
}

func (f *findings) String() string {
	var b strings.Builder
	for kind, list := range map[string][]string{"lost": f.lost, "doubled": f.doubled, "broken": f.broken} {
		fmt.Fprintf(&b, "%s: %d\n", kind, len(list))
		for _, text := range list[:min(5, len(list))] {
			b.WriteString("  " + text + "\n")
		}
	}
	return b.String()
}

// check holds an instance, as GET answers it, against the ledger.
func (l *ledger) check(id string, a answer) (f findings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.instances = 1
	created, promised := l.mu.created[id], l.mu.events[id]
	state, err := a.ReadRecord()
	if a.Status == http.StatusNotFound {
		f.lost = append(f.lost, fmt.Sprintf("instance %s, created by %s", id, created.key))
		return f
	}
	if err != nil {
		f.broken = append(f.broken, fmt.Sprintf("instance %s: %v", id, err))
		return f
	}
	if reason := state.HistoryReason(); reason != "" {
		f.broken = append(f.broken, fmt.Sprintf("instance %s: %s", id, reason))
	}
	places := map[string][]int{} // by event name, counted from 1
	for i, e := range state.History {
		places[e.TransitionEvent] = append(places[e.TransitionEvent], i+1)
	}
	if s := l.mu.shown[id]; s.entries > 0 && !slices.Contains(places[s.last], s.entries) {
		f.lost = append(f.lost, fmt.Sprintf("instance %s showed %q at %d and took it back: it stands at %v", id, s.last, s.entries, places[s.last]))
	}
	known := map[string]bool{"": true}
	for _, p := range promised {
		name := "e." + p.key
		known[name] = true
		switch at := places[name]; {
		case len(at) > 1:
			f.doubled = append(f.doubled, fmt.Sprintf("event %s of %s stands at %v", p.key, id, at))
		case p.acked && !slices.Equal(at, []int{p.position}):
			f.lost = append(f.lost, fmt.Sprintf("event %s of %s was acknowledged at %d and stands at %v", p.key, id, p.position, at))
		}
	}
	for name := range places {
		if !known[name] {
			f.broken = append(f.broken, fmt.Sprintf("instance %s has the event %q that nobody sent to it", id, name))
		}
	}
	last := strings.TrimPrefix(state.History[len(state.History)-1].TransitionEvent, "e.")
	if public := loadDataOf(&state); public.Key != created.key || public.Count != len(state.History)-1 || public.Last != last {
		f.broken = append(f.broken, fmt.Sprintf("instance %s: record %+v does not belong to a history of %d that ends with %q",
			id, public, len(state.History), last))
	}
	return f
}

// due returns what is to be checked after a restart: the instances asked since
// the last check with some others, and keys to repeat, the newest first.
func (l *ledger) due(random *rand.Rand, others, repeats int) (instances []string, keys []*promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.mu.touched {
		if l.mu.created[id] != nil {
			instances = append(instances, id)
		}
	}
	all := slices.Sorted(maps.Keys(l.mu.created))
	for range min(others, len(all)) {
		instances = append(instances, all[random.IntN(len(all))])
	}
	recent := l.mu.recent
	keys = append(keys, recent[max(0, len(recent)-repeats):]...)
	clear(l.mu.touched)
	l.mu.recent = nil
	return instances, keys
}

func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.acks
}

// all returns all instances, and up to so many acknowledged keys.
func (l *ledger) all(random *rand.Rand, repeats int) (instances []string, keys []*promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(l.mu.promises)) {
		if p := l.mu.promises[key]; p.acked {
			keys = append(keys, p)
		}
	}
	random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return slices.Sorted(maps.Keys(l.mu.created)), keys[:min(repeats, len(keys))]
}
