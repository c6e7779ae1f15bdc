package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/query"
)

// TestForwardedBytes: large bodies and answers pass whole, and what ends early never looks whole.
func TestForwardedBytes(t *testing.T) {
	nodes := startNodes(t, Options{}, "A", "B")
	a, b := nodes["A"], nodes["B"]
	a.follow(b)
	t.Run("a body", func(t *testing.T) {
		text := strings.Repeat("x", 1<<20-300)
		a.do(t, post("event", strings.Replace(eventBody, `{"a":1}`, `{"a":"`+text+`"}`, 1))).WantStatus(t, 200)
		got := b.workflows.asked.(*message.Event).Data
		assert.Equal(t, `{"a":"`+text+`"}`, string(got), "B got %d bytes", len(got))
	})
	t.Run("an answer", func(t *testing.T) {
		entries := strings.Repeat(entryOfAnn+",", 50_000) + entryOfBob // 6 MB, sent whole
		b.workflows.load = func(_ context.Context, r *message.Load) (*message.Reply, error) {
			reply := smallReply(r.WorkflowID, r.InstanceID, 2, true)
			reply.History = []byte(entries)
			return reply, nil
		}
		r := get("/workflow/api/v1/instance/leave/" + instanceOne)
		want, got := b.do(t, r), a.do(t, r)
		assert.True(t, got.Body == want.Body && got.Header.Get("Content-Length") != "", "got %d bytes, want %d", len(got.Body), len(want.Body))
	})
	const items = 2_000 // 20 MB, streamed
	broken := false
	b.workflows.query = func(_ context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
		for range items {
			if err := item(bigItem); err != nil {
				return nil, err
			}
		}
		if broken {
			return nil, failure.ErrBusy
		}
		return smallEnd(), nil
	}
	r := get("/workflow/api/v1/instances/leave")
	t.Run("a list", func(t *testing.T) {
		got := a.do(t, r)
		assert.True(t, strings.Count(got.Body, `"_id"`) == items && strings.HasSuffix(got.Body, "]}") && got.Header.Get("Content-Length") == "", len(got.Body))
	})
	t.Run("a list that ends early", func(t *testing.T) {
		broken = true
		text, err := a.rawErr(t, "GET "+r.Path+" HTTP/1.0\r\nHost: x\r\n"+withToken+"\r\n\r\n")
		assert.True(t, errors.Is(err, syscall.ECONNRESET) && !strings.Contains(text, "]}"), "got the end %v behind %d bytes, want a reset", err, len(text))
		assert.Equal(t, uint64(1), a.Metrics().Cut, "answers were cut, want 1")
	})
	t.Run("a body in chunks", func(t *testing.T) {
		text, err := a.rawErr(t, "POST /workflow/api/v1/event HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"+withToken+"\r\n\r\n"+
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(eventBody), eventBody))
		assert.True(t, err == nil && strings.HasPrefix(text, "HTTP/1.1 200 ") && strings.Contains(text, "\r\nConnection: close\r\n"), "%v %v", err, text)
	})
}

// ledger is what a cluster of fakes knows: who leads each instance, and what was done.
type ledger struct {
	mu    sync.Mutex
	leads map[string]string // by instance; guarded by mu, as is the rest
	done  map[string]int
	turn  int
}

// at is the workflows of one node, which carries out only what it leads. Every fifth event the
// leadership of its instance moves on.
func (l *ledger) at(n *node, names []string) *fakeWorkflows {
	return &fakeWorkflows{send: func(_ context.Context, r *message.Event) (*message.Reply, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.leads[r.InstanceID] != n.name {
			return nil, failure.Elsewhere(uint16(r.InstanceID[0]))
		}
		l.done[r.InstanceID]++
		if l.turn++; l.turn%5 == 0 {
			l.leads[r.InstanceID] = names[l.turn/5%len(names)]
		}
		return smallReply(r.WorkflowID, r.InstanceID, uint64(l.done[r.InstanceID]), r.WithHistory), nil
	}}
}

// reports says who leads an instance, whose name begins with the number of its shard.
type reports struct {
	*ledger
	nodes map[string]*node
	self  string
}

func (p reports) Leader(_ context.Context, shard uint16) (Peer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for instance, name := range p.leads {
		if uint16(instance[0]) == shard {
			if name == p.self {
				return Peer{Node: name}, nil
			}
			return p.nodes[name].peer, nil
		}
	}
	return Peer{}, errLeaderless
}

// TestForwardingUnderLoad: whoever asks any node while the leaders move is answered, and each
// event is done once.
func TestForwardingUnderLoad(t *testing.T) {
	names := []string{"A", "B", "C"}
	nodes := startNodes(t, Options{LeaderWaitMax: time.Hour}, names...) // also on a machine that stands still
	l := &ledger{leads: map[string]string{"a": "A", "b": "B", "c": "C"}, done: map[string]int{}}
	for _, n := range nodes {
		n.open(func(s *Services) { s.Workflows, s.Peers = l.at(n, names), reports{l, nodes, n.name} })
	}
	const each = 40
	var callers sync.WaitGroup
	for i := range 6 {
		callers.Go(func() {
			for k := range each {
				instance, name := string(rune('a'+(i+k)%3)), names[(i+k/2)%3]
				r := post("event", strings.Replace(eventBody, instanceOne, instance, 1))
				got, err := nodes[name].client.Try(r)
				assert.True(t, err == nil && got.Status == http.StatusOK, "%s at %s: got %d %s, %v", instance, name, got.Status, got.Body, err)
			}
		})
	}
	callers.Wait()
	done, forwarded := 0, uint64(0)
	for _, n := range l.done {
		done += n
	}
	for _, n := range nodes {
		m := n.Metrics()
		forwarded += m.Forwarded
		assert.True(t, m.InFlight == 0 && m.LeaderWaiting == 0, "%s: %d are in flight and %d wait", n.name, m.InFlight, m.LeaderWaiting)
	}
	assert.True(t, done == 6*each && forwarded != 0, "%d events were done and %d forwarded, want %d and some", done, forwarded, 6*each)
}
