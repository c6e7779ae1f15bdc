package endtoend

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/client"
)

// automation is a home whose instances send deliveries, or have a child until that is done.
func automation(receiver string) map[string]string {
	return map[string]string{
		"identity.yaml": "roles: [{id: clerk, privileges: [mod-workflows]}]\nusers: [{id: ann, roles: [clerk]}]\n",
		"troupe.yaml":   "webhooks: {allow: [127.0.0.0/8], endpoints: {sending: {to: {url: '" + receiver + "'}}}}\n",
		"workflows/sending.yaml": "id: sending\nwebhooks: {to: {retry: {limit: 100, delay: PT1S, maxDelay: PT2S}}}\n" +
			"stateMachines: {main: {initial: open, states: {open: {on: {go: {actions: [{webhook: {to: to, body: {n: '${event.data.n}', of: '${instance.id}'}}}]}}}}}}\n",
		"workflows/asking.yaml": "id: asking\nstateMachines: {main: {initial: open, states: {open: {invoke: {workflow: answering, data: {svcPublic: {of: '${instance.id}'}}, onDone: heard}, " +
			"on: {leave: left}}, heard: {type: final}, left: {type: final}}}}\n",
		"workflows/answering.yaml": "id: answering\nstateMachines: {main: {initial: open, states: {open: {after: {PT3S: answered}}, answered: {type: final}}}}\n",
	}
}

// automated is the program with a client, over all its kills.
type automated struct {
	*program
	*client.Client
	token string
}

func startAutomated(t *testing.T, receiver string) *automated {
	a := &automated{program: start(t, newHome(t, automation(receiver)))}
	a.token = a.home.token("ann")
	a.connect()
	return a
}

func (a *automated) connect() {
	a.t.Helper()
	address, err := a.log.listening()
	if err == nil {
		a.Client, err = client.New(client.Options{Address: "http://" + address, Token: a.token, RetryMax: 50, CallMax: waitMax})
	}
	require.NoError(a.t, err)
}

// killed ends the program and starts it again.
func (a *automated) killed() {
	a.t.Helper()
	a.quiet = true
	a.kill()
	a.program = start(a.t, a.home)
	a.connect()
}

// batch sends items until none is refused for now, and returns the ids of their instances in order.
func (a *automated) batch(items ...string) []string {
	a.t.Helper()
	ids, r := make([]string, len(items)), client.BatchRequest{Key: client.NewKey()}
	for _, item := range items {
		r.Items = append(r.Items, json.RawMessage(item))
	}
	a.await("a batch", func() bool {
		results, err := a.Batch(a.t.Context(), r)
		require.NoError(a.t, err)
		for i := range results {
			switch ids[i] = results[i].InstanceID; results[i].Status {
			case 200:
			case 429, 503:
				return false
			default:
				a.t.Fatalf("item %d: %v", i, results[i].Err())
			}
		}
		return true
	})
	return ids
}

// killsOf is how often a test about automation kills, and how many instances it makes.
func killsOf() (kills, instances int) {
	if os.Getenv(killsName) != "" {
		return 4, 1000
	}
	return 2, 100
}

// receiver is the other side of all deliveries.
type receiver struct {
	mu       sync.Mutex
	ids      map[string][]string // of each instance's deliveries, in the order of their first arrival
	arrived  int                 // each once
	repeated int
	fault    error
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var event struct {
		Data struct {
			N  int    `json:"n"`
			Of string `json:"of"`
		} `json:"data"`
	}
	if err := json.NewDecoder(req.Body).Decode(&event); err != nil {
		w.WriteHeader(http.StatusBadRequest) // the program was killed while it wrote
		return
	}
	r.note(event.Data.Of, event.Data.N, req.Header.Get("Webhook-Id"))
}

// note demands the next delivery of its instance, or the last one again under the same id.
func (r *receiver) note(of string, n int, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch ids := r.ids[of]; {
	case n == len(ids)+1:
		r.ids[of] = append(ids, id)
		r.arrived++
	case n == len(ids) && ids[n-1] == id:
		r.repeated++
	default:
		r.fault = errors.Join(r.fault, fmt.Errorf("delivery %d of %s came as %q after %q", n, of, id, ids))
	}
}

func (r *receiver) has(count int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault != nil || r.arrived >= count
}

// TestTheReceiverFindsWhatIsWrong is the control of TestKillDeliveries.
func TestTheReceiverFindsWhatIsWrong(t *testing.T) {
	for came, right := range map[string]bool{"a1x b1y a2z": true, "a1x a2y a2y": true, "a1x a1y": false, "a1x a3y": false, "a1x a2y a1x": false} {
		r := &receiver{ids: map[string][]string{}}
		for one := range strings.FieldsSeq(came) {
			r.note(one[:1], int(one[1]-'0'), one[2:])
		}
		assert.Equal(t, right, r.fault == nil, "%s: got %v", came, r.fault)
	}
}

// TestKillDeliveries ends the program by SIGKILL while deliveries leave: all arrive, those of an instance in their order and
// under one id each.
func TestKillDeliveries(t *testing.T) {
	t.Parallel()
	const each = 5 // of an instance
	kills, instances := killsOf()
	random := rand.New(rand.NewPCG(seed(t), math.MaxUint64))
	closed, err := net.Listen("tcp", "127.0.0.1:0") // nobody listens until all deliveries wait
	require.NoError(t, err)
	address := closed.Addr().String()
	_ = closed.Close()
	a := startAutomated(t, "http://"+address+"/")
	ids := a.batch(slices.Repeat([]string{`{"workflowId":"sending"}`}, instances)...)
	var events []string
	for n := range each * instances { // all of an instance in one batch
		events = append(events, fmt.Sprintf(`{"workflowId":"sending","instanceId":%q,"event":{"name":"go","data":{"n":%d}}}`, ids[n/each], n%each+1))
	}
	a.batch(events...)
	r := &receiver{ids: map[string][]string{}}
	s := httptest.NewUnstartedServer(r)
	_ = s.Listener.Close()
	s.Listener, err = net.Listen("tcp", address)
	require.NoError(t, err)
	s.Start()
	defer s.Close()
	for kill := range kills {
		a.await("deliveries", func() bool { return r.has(len(events) * (kill + 1) / (kills + 2)) })
		pause(logUniform(random, time.Millisecond, 50*time.Millisecond))
		a.killed()
	}
	a.await("all deliveries", func() bool { return r.has(len(events)) })
	a.stop()
	t.Logf("%d arrived, %d of them twice", r.arrived, r.repeated)
	assert.True(t, r.fault == nil && r.arrived == len(events), "%d of %d arrived: %v", r.arrived, len(events), r.fault)
}

// TestKillChildren ends the program by SIGKILL while instances have children and others leave theirs: nobody has two, all end,
// and each parent that stayed is told once.
func TestKillChildren(t *testing.T) {
	t.Parallel()
	kills, instances := killsOf()
	random := rand.New(rand.NewPCG(seed(t), math.MaxUint64))
	a := startAutomated(t, "http://127.0.0.1:9/")
	ids := a.batch(slices.Repeat([]string{`{"workflowId":"asking"}`}, instances)...)
	var leaving []string
	for i := 0; i < len(ids); i += 2 {
		leaving = append(leaving, `{"workflowId":"asking","instanceId":"`+ids[i]+`","event":{"name":"leave"}}`)
	}
	a.batch(leaving...)
	for range kills {
		pause(logUniform(random, 50*time.Millisecond, 350*time.Millisecond))
		a.killed()
	}
	a.await("the end of all children", func() bool {
		waiting, err := a.Instances(t.Context(), client.ListRequest{WorkflowID: "asking", Filter: `{"states.nodeId":"open"}`, Limit: 1})
		outbox, err2 := a.Outbox(t.Context(), client.OutboxRequest{Limit: 1})
		require.NoError(t, errors.Join(err, err2))
		return len(waiting.Items) == 0 && len(outbox.Items) == 0
	})
	children := map[string][]string{} // by parent
	for _, in := range a.everyInstance("answering") {
		var public struct{ Of string }
		require.NoError(t, json.Unmarshal(in.Public, &public))
		children[public.Of] = append(children[public.Of], in.ID)
	}
	heard, parents := 0, a.everyInstance("asking")
	for _, in := range parents {
		events := ""
		for _, e := range in.History {
			events += e.TransitionEvent + ","
		}
		// NB: one that left too late has its entry all the same, and one that left before its child was created has none.
		told := strings.HasPrefix(events, ",done.invoke.open,")
		own := children[in.ID]
		delete(children, in.ID)
		assert.True(t, len(own) <= 1 && (!told || len(own) != 0) && slices.Contains([]string{",leave,", ",done.invoke.open,", ",done.invoke.open,leave,"}, events),
			"%s has the children %v and the events %s", in.ID, own, events)
		if told {
			heard++
		}
		for _, child := range own {
			p, err := a.Pending(t.Context(), "answering", child)
			require.NoError(t, err)
			assert.True(t, p.Ended != nil && (!told || *p.Ended == "done") && len(p.Timers) <= 0, "%v %v %v", child, in.ID, p.Raw)
		}
	}
	t.Logf("%d parents were told, %d left", heard, len(parents)-heard)
	assert.True(t, len(parents) == len(ids) && len(children) <= 0, "%d of %d parents are there; children of others: %v", len(parents), len(ids), children)
	a.stop()
}

func (a *automated) everyInstance(workflow string) (all []client.Instance) {
	a.t.Helper()
	for page, err := range a.InstancePages(a.t.Context(), client.ListRequest{WorkflowID: workflow, Limit: 1000, Fields: []string{"svcHistory"}}) {
		require.NoError(a.t, err)
		all = append(all, page.Items...)
	}
	return all
}
