package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/leader"
)

const testSlots = 16

// fakeCluster has three nodes, whose slots are led by each in turn from lead on.
type fakeCluster struct {
	nodes [3]*httptest.Server
	*Client

	mu     sync.Mutex
	lead   int                 // guarded by mu, as is the rest
	asked  [3]int              // requests
	direct int                 // requests that came to the leader
	say    func(string) string // what is said in place of the header; nil: the header
	fault  [3]http.HandlerFunc // what a node does in place of an answer
}

func startCluster(t *testing.T) *fakeCluster {
	t.Helper()
	c := &fakeCluster{}
	addresses := make([]string, len(c.nodes))
	for i := range c.nodes {
		c.nodes[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.answer(i, w, r) }))
		addresses[i] = c.nodes[i].URL
		t.Cleanup(c.nodes[i].Close)
	}
	c.Client = connect(t, addresses[0], Options{Others: addresses[1:], HTTP: unkept()})
	c.pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return c
}

// fail has the nodes do something else than answer, from here on, where it is not nil, and counts their requests from 0.
func (c *fakeCluster) fail(a, b, d http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault, c.asked, c.direct = [3]http.HandlerFunc{a, b, d}, [3]int{}, 0
}

// requests is how many came to each node.
func (c *fakeCluster) requests() [3]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func sum(n [3]int) int { return n[0] + n[1] + n[2] }

func nodeName(i int) string { return fmt.Sprintf("01J0000000000000000000000%c", 'A'+i) }

func (c *fakeCluster) answer(node int, w http.ResponseWriter, r *http.Request) {
	id := ""
	if r.Method == http.MethodGet {
		id = r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	} else {
		body, _ := io.ReadAll(r.Body)
		if _, rest, ok := strings.Cut(string(body), `"instanceId":"`); ok {
			id = rest[:26]
		}
	}
	c.mu.Lock()
	c.asked[node]++
	slot, _ := leader.SlotOf(id, testSlots)
	leads := (slot + c.lead) % len(c.nodes)
	if leads == node {
		c.direct++
	}
	value := leader.Place{Node: nodeName(leads), Self: nodeName(node), First: slot, Last: slot, Slots: testSlots}.String()
	if c.say != nil {
		value = c.say(value)
	}
	fault := c.fault[node]
	c.mu.Unlock()
	if fault != nil {
		fault(w, r)
		return
	}
	w.Header()[leader.Header] = []string{value}
	w.Header()["Etag"] = []string{`"1"`}
	_, _ = fmt.Fprintf(w, `{"state":{"_id":"%s","workflowId":"leave"}}`, id)
}

// ids are those of so many instances in each slot.
func ids(each int) (all []string) {
	have := [testSlots]int{}
	for len(all) < each*testSlots {
		id := ulid.Make().String()
		if slot, _ := leader.SlotOf(id, testSlots); have[slot] < each {
			have[slot]++
			all = append(all, id)
		}
	}
	return all
}

// send sends an event to each instance, and returns how many requests were made and how many of them went to the leader.
func (c *fakeCluster) send(t *testing.T, instances []string) (asked, direct int) {
	t.Helper()
	c.mu.Lock()
	c.asked, c.direct = [3]int{}, 0
	c.mu.Unlock()
	for _, id := range instances {
		_, err := c.Send(t.Context(), SendRequest{WorkflowID: "leave", InstanceID: id, Event: "note"})
		require.NoError(t, err)
		_, err = c.Instance(t.Context(), InstanceRequest{WorkflowID: "leave", InstanceID: id})
		require.NoError(t, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return sum(c.asked), c.direct
}

// TestLeaderIsAsked holds gateway/INTERFACE.md, "Which node leads": once answers have told, every request goes to the leader; and
// when another one leads, the first answer tells that.
func TestLeaderIsAsked(t *testing.T) {
	c, instances := startCluster(t), ids(4)
	c.send(t, instances)
	asked, direct := c.send(t, instances)
	assert.True(t, asked == 2*len(instances) && direct == asked, "%d of %d requests went to the leader", direct, asked)
	c.mu.Lock()
	c.lead++
	c.mu.Unlock()
	asked, direct = c.send(t, instances)
	assert.True(t, asked == 2*len(instances) && direct == asked-testSlots, "%d of %d requests went to the new leader, want all but the first of each slot", direct, asked)
	asked, direct = c.send(t, instances)
	assert.Equal(t, asked, direct, "afterwards")
}

// TestWhatIsNotUnderstoodIsIgnored: then each node is asked in turn.
func TestWhatIsNotUnderstoodIsIgnored(t *testing.T) {
	for _, say := range []func(string) string{
		func(string) string { return "" },
		func(v string) string { return strings.Replace(v, "/16", "/0", 1) },
		func(v string) string { return strings.Replace(v, "self=01", "self=7Z", 1) },
	} {
		c, instances := startCluster(t), ids(3)
		c.mu.Lock()
		c.say = say
		c.mu.Unlock()
		asked, _ := c.send(t, instances)
		assert.True(t, asked == 2*len(instances) && c.requests() == [3]int{asked / 3, asked / 3, asked / 3}, "got %v of %d", c.requests(), asked)
	}
}

// cutOff ends the connection without an answer.
func cutOff(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// TestNodeIsGone: what can be repeated is asked of another node, and at once.
func TestNodeIsGone(t *testing.T) {
	t.Run("nobody listens", func(t *testing.T) {
		c, instances := startCluster(t), ids(2)
		c.send(t, instances)
		c.nodes[1].Close()
		asked, _ := c.send(t, instances)
		assert.True(t, asked == 2*len(instances) && c.requests()[1] == 0, "got %v", c.requests())
		_, err := c.Migrate(t.Context(), "leave", nil) // it has no key, and nothing was sent
		assert.NoError(t, err)
	})
	t.Run("the connection breaks", func(t *testing.T) {
		c, instances := startCluster(t), ids(2)
		c.send(t, instances)
		c.fail(nil, cutOff, nil)
		asked, _ := c.send(t, instances)
		assert.True(t, asked == 2*len(instances)+c.requests()[1] && c.requests()[1] >= 1 && c.requests()[1] <= 2, "%d requests, %v", asked, c.requests())
	})
	t.Run("what cannot be repeated", func(t *testing.T) {
		c := startCluster(t)
		c.fail(cutOff, cutOff, cutOff)
		_, err := c.Migrate(t.Context(), "leave", nil)
		require.Error(t, err)
		assert.Equal(t, 1, sum(c.requests()), "a request without a key, after a broken connection")
		part := func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Length"] = []string{"100"}
			_, _ = io.WriteString(w, "{")
			assert.NoError(t, http.NewResponseController(w).Flush())
			cutOff(w, r)
		}
		c.fail(part, part, part)
		_, err = c.Instance(t.Context(), InstanceRequest{WorkflowID: "leave", InstanceID: ids(1)[0]})
		require.Error(t, err)
		assert.Equal(t, 1, sum(c.requests()), "a read that broke off in its answer")
	})
	t.Run("all are", func(t *testing.T) {
		c := startCluster(t)
		c.fail(cutOff, cutOff, cutOff)
		_, err := c.Instance(t.Context(), InstanceRequest{WorkflowID: "leave", InstanceID: ids(1)[0]})
		require.Error(t, err)
		assert.Equal(t, [3]int{1, 1, 1}, c.requests(), "a read")
		_, err = c.Send(t.Context(), SendRequest{WorkflowID: "leave", InstanceID: ids(1)[0], Event: "note"})
		require.ErrorIs(t, err, ErrOutcomeUnknown)
		assert.Equal(t, 3+3*5, sum(c.requests()), "an event, whose every attempt asks all")
	})
	t.Run("503 is answered elsewhere", func(t *testing.T) {
		c, instances := startCluster(t), ids(1)
		c.fail(nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Retry-After"] = []string{"1"}
			w.WriteHeader(http.StatusServiceUnavailable)
		}, nil)
		c.send(t, instances)
	})
	t.Run("a watch", func(t *testing.T) {
		c := startCluster(t)
		stream := func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{"text/event-stream"}
			_, _ = io.WriteString(w, "id: 1\nevent: lost\ndata: {}\n\n")
		}
		c.fail(cutOff, stream, cutOff)
		for n, err := range c.Watch(t.Context(), WatchRequest{WorkflowID: "leave"}) {
			require.NoError(t, err)
			assert.Equal(t, "1", n.ID)
			break
		}
	})
}
