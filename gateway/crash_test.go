package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"troupe/actors/actorstest"
	"troupe/actors/inventory"
	"troupe/actors/outbox"
	"troupe/actors/workflow"
	"troupe/gateway"
	"troupe/gateway/wiretest"
	"troupe/persistence/storetest"
)

// everyCut makes TestNoCrashShowsThroughHTTP try all cuts: make crash.
var everyCut = flag.Bool("every-cut", false, "try the script with every cut of the power, and not only with some")

// isTried reports whether a cut is tried: all of them, or some from the beginning to the end.
func (c *cut) isTried() bool {
	switch {
	case *everyCut:
		return true
	case testing.Short():
		return c.number%113 == 0
	}
	return c.number%37 == 0
}

// TestNoCrashShowsThroughHTTP holds persistence/PROMISES.md, "P2", "P6", "P11", "P28" and "P29", as a client sees them. A
// script of requests goes through the handler. The power fails before every write, sync and change of a folder that the
// store makes meanwhile, from its start to its end, in order; of a write its first sectors of 512 bytes survive, one,
// two, three and so on. Each disk that is left is started again: what had been answered must be there once, all rows
// must fit each other, and the script, sent once more with the same keys, must get the same answers and come to the same
// end, with one child and one delivery.
func TestNoCrashShowsThroughHTTP(t *testing.T) {
	base := emptyHome(t)
	want, err := play(t, base.AfterCrash(), &cut{})
	require.NoError(t, err)
	cuts, all := cutsOf(t, base.AfterCrash(), false, (*cut).isTried)
	for _, c := range cuts {
		got, err := play(t, c.disk, c)
		require.NoError(t, err, "cut %d: %s, after %d answers", c.number, c.where, len(c.answered))
		require.Equal(t, want, got, "cut %d: %s, after %d answers", c.number, c.where, len(c.answered))
	}
	t.Logf("%d of %d cuts", len(cuts), all)
}

// TestTheScriptFindsADiskThatLies is the control: with syncs that are reported and not done, the first answer is lost by
// the first cut behind it.
func TestTheScriptFindsADiskThatLies(t *testing.T) {
	cuts, _ := cutsOf(t, emptyHome(t).AfterCrash(), true, func(c *cut) bool { return len(c.answered) == 1 })
	_, err := play(t, cuts[0].disk, cuts[0])
	require.ErrorContains(t, err, "404")
}

// step is a request of the script. $1 and $2 are the instances that its creates were answered.
type step struct{ method, path, body, key string }

const (
	firstID, secondID = "$1", "$2"
	theDeletion       = 7 // in script
)

var script = []step{
	{"POST", "create", `{"workflowId":"order","data":{"svcPublic":{"sum":1}}}`, "a"},
	{"POST", "event", `{"workflowId":"order","instanceId":"$1","event":{"name":"submit","data":{"add":2}}}`, "b"},
	{"POST", "event", `{"workflowId":"order","instanceId":"$1","event":{"name":"submit","data":{"add":2}}}`, "b"},
	{"POST", "/form-runtime/api/v1/task/$1-2-0/submit", `{"data":{"why":"so"}}`, "c"},
	{"POST", "create", `{"workflowId":"order","data":{"svcPublic":{"sum":3}}}`, "d"},
	{"POST", "event", `{"workflowId":"order","instanceId":"$2","event":{"name":"submit","data":{"add":4}}}`, "e"},
	{"GET", "instance/order/$2", "", ""},
	{"DELETE", "instance/order/$2", "", ""},
	{"POST", "event", `{"workflowId":"order","instanceId":"$1","event":{"name":"close"}}`, "f"}, // when the child and the timer were there
}

// isOfSecond reports whether a step is about the instance that the script deletes.
func (s step) isOfSecond() bool { return s.key == "d" || strings.Contains(s.path+s.body, secondID) }

// life is the service on a disk, from its start to its end.
type life struct {
	*actorstest.Actors
	handler http.Handler
	session string
	ledger  *ledger
}

// ledger is what is known outside, in the order in which it became known.
type ledger struct {
	mu       sync.Mutex
	asked    int               // requests that were sent
	answered []string          // the bodies of their answers
	sent     map[string]string // what the webhook got, by the id of the delivery
}

func newLedger() *ledger { return &ledger{sent: map[string]string{}} }

// cut is a disk that is left, with what was known by then.
type cut struct {
	number   int // from 0, in the order of the operations
	where    string
	disk     *storetest.Disk
	asked    int
	answered []string
	sent     map[string]string
}

// emptyHome is a store with the definitions.
func emptyHome(t *testing.T) *storetest.Disk {
	disk := storetest.NewDisk()
	synctest.Test(t, func(t *testing.T) { begin(t, disk, 0, newLedger()) })
	return disk
}

// begin starts a service that ends with the test. Its clock is ahead by so much.
func begin(t *testing.T, disk *storetest.Disk, ahead time.Duration, known *ledger) *life {
	t.Cleanup(func() { <-time.After(time.Second) }) // the actors' library counts dead letters for a moment
	l := &life{ledger: known}
	l.Actors = actorstest.Start(t, actorstest.Options{
		Files: filesOf("crash"), Disk: disk, Clock: func() time.Time { return time.Now().Add(ahead) }, Workflow: workflow.Options{Sender: l.ledger}, InBubble: true,
	})
	handler, err := gateway.New(gateway.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, handler.Stop(context.Background())) })
	handler.Open(gateway.Services{
		Workflows: l.Workflows, Queries: l.Workflows.Queries, Watches: l.Workflows.Watches, Changes: l.Workflows.Changes, Worklists: l.Workflows.Worklists,
		TaskWatches: l.Workflows.TaskWatches, Waiting: l.Workflows.Waiting, Credentials: l.Identities, Sessions: l.Identities, Portal: l.Portal, Users: l.Identities, Presentations: l.Presentations,
	})
	l.handler, l.session = handler, l.Session("ann")
	return l
}

// Send implements outbox.Sender.
func (l *ledger) Send(_ context.Context, a outbox.Attempt) outbox.Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[a.ID] = string(a.Body)
	return outbox.Answer{Status: http.StatusOK}
}

// URL implements outbox.Sender.
func (*ledger) URL(outbox.Attempt) string { return "" }

// cutsOf plays the script on a disk, and returns the cuts that are wanted, and how many there were.
func cutsOf(t *testing.T, disk *storetest.Disk, lies bool, want func(*cut) bool) (cuts []*cut, all int) {
	known := newLedger()
	disk.OnCut(func(c storetest.Cut) {
		known.mu.Lock()
		defer known.mu.Unlock()
		at := &cut{all, c.Where, nil, known.asked, slices.Clone(known.answered), maps.Clone(known.sent)}
		if want(at) {
			at.disk = c.Take()
			cuts = append(cuts, at)
		}
		all++
	})
	if lies {
		disk.LoseSyncs()
	}
	synctest.Test(t, func(t *testing.T) {
		_, err := begin(t, disk, 0, known).play(&cut{})
		require.NoError(t, err)
	})
	return cuts, all
}

// play starts the service on a disk, checks it against what is known, and plays the script. It returns how that ended,
// without ids and times.
func play(t *testing.T, disk *storetest.Disk, known *cut) (end string, err error) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, disk, 24*time.Hour, newLedger())
		maps.Copy(l.ledger.sent, known.sent)
		if err = l.check(known); err == nil {
			end, err = l.play(known)
		}
	})
	return end, err
}

// check compares the service with what was answered before its start.
func (l *life) check(known *cut) error {
	var damages []error
	_, err := inventory.Verify(context.Background(), &inventory.Options{
		Store: l.Store, Catalog: l.Catalog(), Say: func(string) {}, Damage: func(line string) { damages = append(damages, errors.New(line)) },
	})
	if err := errors.Join(append(damages, err)...); err != nil {
		return err
	}
	ids := map[string]string{}
	last := map[string]wiretest.Record{} // by instance, as it was answered
	for i, body := range known.answered {
		if r, err := (wiretest.Answer{Status: http.StatusOK, Body: body}).ReadRecord(); err == nil {
			name := firstID
			if script[i].isOfSecond() {
				name = secondID
			}
			ids[name], last[name] = r.ID, r
		}
	}
	for name, was := range last {
		now := l.ask(step{"GET", "instance/order/" + was.ID, "", ""}, ids)
		if name == secondID && known.asked > theDeletion && now.Status == http.StatusNotFound {
			continue
		}
		if name == secondID && len(known.answered) > theDeletion {
			return fmt.Errorf("%s was deleted, and is there: %s", was.ID, now.Body)
		}
		is, err := now.ReadRecord()
		if err != nil {
			return err
		}
		if len(is.History) < len(was.History) || !slices.EqualFunc(was.History, is.History[:len(was.History)], sameEntry) {
			return fmt.Errorf("the history of %s was %v, and is %v", was.ID, was.History, is.History)
		}
		submits, sum := 0, map[string]int{firstID: 1, secondID: 3}[name]
		for _, e := range is.History {
			if e.TransitionEvent == "submit" {
				submits++
				sum += sum + 1
			}
		}
		var public struct{ Sum int }
		if err := json.Unmarshal([]byte(is.Public), &public); err != nil || public.Sum != sum || submits > 1 {
			return fmt.Errorf("%d times submit, and %s (%w)", submits, is.Public, err)
		}
	}
	return nil
}

func sameEntry(a, b wiretest.Entry) bool {
	return a.User == b.User && a.TS == b.TS && a.TransitionEvent == b.TransitionEvent && slices.Equal(a.StartState, b.StartState) && slices.Equal(a.EndState, b.EndState)
}

// ask sends one request.
func (l *life) ask(s step, ids map[string]string) wiretest.Answer {
	for name, id := range ids {
		s.path, s.body = strings.ReplaceAll(s.path, name, id), strings.ReplaceAll(s.body, name, id)
	}
	if !strings.HasPrefix(s.path, "/") {
		s.path = wiretest.Root + "/" + s.path
	}
	r := httptest.NewRequest(s.method, s.path, strings.NewReader(s.body))
	r.Header.Set("Cookie", "session="+l.session)
	r.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		r.Header.Set("Idempotency-Key", s.key)
	}
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	return wiretest.Answer{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
}

// play sends the script. Answers that are known must be the same.
func (l *life) play(known *cut) (end string, err error) {
	ids := map[string]string{}
	for i, s := range script {
		if i == len(script)-1 {
			l.await(ids, "reminded", "done")
		}
		l.ledger.mu.Lock()
		l.ledger.asked++
		l.ledger.mu.Unlock()
		a := l.ask(s, ids)
		switch gone := a.Status == http.StatusNotFound && s.isOfSecond() && known.asked > theDeletion; {
		case gone:
			a.Body = ""
		case a.Status != http.StatusOK:
			return "", fmt.Errorf("step %d: %d %s", i+1, a.Status, a.Body)
		case i < len(known.answered) && a.Body != known.answered[i] && s.method != http.MethodGet:
			return "", fmt.Errorf("step %d was answered\n%s\nand is now\n%s", i+1, known.answered[i], a.Body)
		}
		if r, err := a.ReadRecord(); err == nil && s.path == "create" {
			ids[[]string{firstID, secondID}[len(ids)]] = r.ID
		}
		l.ledger.mu.Lock()
		l.ledger.answered = append(l.ledger.answered, a.Body)
		l.ledger.mu.Unlock()
	}
	return l.end(ids)
}

// await returns when the first instance is in one of some nodes.
func (l *life) await(ids map[string]string, nodes ...string) {
	for {
		r, err := l.ask(step{"GET", "instance/order/$1", "", ""}, ids).ReadRecord()
		if err == nil && slices.ContainsFunc(nodes, func(n string) bool { return n == r.States[0].NodeID }) {
			return
		}
		<-time.After(10 * time.Second)
	}
}

var changes = regexp.MustCompile(`[0-7][0-9A-HJKMNP-TV-Z]{25}|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// end is all that a client can see behind the script, without ids and times.
func (l *life) end(ids map[string]string) (text string, err error) {
	<-time.After(time.Minute) // a message that the crash came before is sent once more, and arrives
	for _, path := range []string{"instance/order/$1", "instances/order?count=true", "instances/parcel?count=true", "outbox", "incidents"} {
		a := l.ask(step{"GET", path, "", ""}, ids)
		if a.Status != http.StatusOK {
			return "", fmt.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
		text += changes.ReplaceAllString(a.Body, "…") + "\n"
	}
	l.ledger.mu.Lock()
	defer l.ledger.mu.Unlock()
	of := map[string]int{}
	for _, body := range l.ledger.sent {
		of[body]++
	}
	if n := of[`"`+ids[firstID]+`"`]; n != 1 {
		return "", fmt.Errorf("%d deliveries of %s: %v", n, ids[firstID], l.ledger.sent)
	}
	return text, nil
}
