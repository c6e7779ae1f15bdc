package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/gateway/internal/instances"
	"troupe/persistence/clocktest"
)

type patientWorkflows struct {
	fakeWorkflows
	asked chan message.Recipient
}

func (w *patientWorkflows) PostEvent(_ *message.Event, to message.Recipient) (workflow.Posted, error) {
	w.asked <- to
	return workflow.Posted{}, nil
}

// stream is a stream of lines on its way, inside a bubble.
type stream struct {
	*Server
	workflows *patientWorkflows
	lines     *io.PipeWriter
	answer    *httptest.ResponseRecorder
	done      chan struct{}
}

func startStream(t *testing.T) *stream {
	t.Helper()
	s, w := startPatient(t, Options{})
	return openStream(s, w, tokenAnn)
}

func startPatient(t *testing.T, o Options) (*Server, *patientWorkflows) {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	w := &patientWorkflows{asked: make(chan message.Recipient, 1000)}
	s.Open(Services{Workflows: w, Credentials: fakeCredentials{}, Sessions: new(fakeSessions)})
	return s, w
}

func openStream(s *Server, w *patientWorkflows, token string) *stream {
	body, lines := io.Pipe()
	r := httptest.NewRequest(http.MethodPost, s.kernel.Options.BasePath+"/workflow/api/v1/events", body)
	r.Header.Set("Content-Type", "application/x-ndjson")
	r.Header.Set("Authorization", "svc.token "+token)
	on := &stream{s, w, lines, httptest.NewRecorder(), make(chan struct{})}
	go func() { s.ServeHTTP(on.answer, r); close(on.done) }()
	return on
}

func (s *stream) send(t *testing.T, n int) {
	t.Helper()
	const item = `{"workflowId":"leave","instanceId":"` + instanceOne + `","event":{"name":"note"}}` + "\n"
	_, err := io.WriteString(s.lines, strings.Repeat(item, n))
	require.NoError(t, err)
	synctest.Wait()
}

func (s *stream) end(t *testing.T) string {
	t.Helper()
	require.NoError(t, s.lines.Close())
	<-s.done
	return s.answer.Body.String()
}

// TestABusyStreamEndsWhenTheServerDrains, with the answers to what it has handed over.
func TestABusyStreamEndsWhenTheServerDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStream(t)
		s.send(t, 1)
		to := <-s.workflows.asked
		s.kernel.Draining.Store(true)
		clocktest.Advance(time.Second)
		s.send(t, 1)
		to.Answered(smallReply("leave", instanceOne, 2, false), nil)
		synctest.Wait()
		select {
		case to := <-s.workflows.asked:
			t.Error("an item was taken while the server drained")
			to.Answered(smallReply("leave", instanceOne, 3, false), nil)
		default:
		}
		got := s.end(t)
		assert.True(t, strings.Count(got, "\n") == 2 && strings.Contains(got, `"status":200`) && strings.Contains(got, `"status":503`), got)
	})
}

// TestTheConnectionOfAStreamIsClosed: net/http would take what is left of a body, when
// reading it was given up, for the next request.
func TestTheConnectionOfAStreamIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStream(t)
		_, err := io.WriteString(s.lines, "{bad\n")
		require.NoError(t, err)
		synctest.Wait()
		got := s.end(t)
		assert.False(t, !strings.Contains(got, `"status":400`) || s.answer.Header().Get("Connection") != "close", "got %v %q", s.answer.Header(), got)
	})
}

// TestAStreamThatIsIdleHasNoWindow: the others share without it.
func TestAStreamThatIsIdleHasNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStream(t)
		for range 2 {
			synctest.Wait()
			assert.Zero(t, s.groups.instances.Shares.Batches.Load(), "idle")
			s.send(t, 1)
			assert.Equal(t, int64(1), s.groups.instances.Shares.Batches.Load(), "with an item")
			(<-s.workflows.asked).Answered(smallReply("leave", instanceOne, 2, false), nil)
		}
		s.end(t)
		assert.Zero(t, s.groups.instances.Shares.Batches.Load(), "at the end")
	})
}

// TestABatchWaitsForTheStore: with a backlog it has one item on its way.
func TestABatchWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStream(t)
		s.workflows.backlog.Store(instances.BatchBacklogMax + 1)
		s.send(t, 3)
		for range 3 {
			synctest.Wait()
			require.Len(t, s.workflows.asked, 1, "items are on their way, want 1")
			(<-s.workflows.asked).Answered(smallReply("leave", instanceOne, 2, false), nil)
		}
		s.end(t)
	})
}

// elsewhereWorkflows are those of a node. While they fail, another one leads.
type elsewhereWorkflows struct {
	fakeWorkflows
	events []string // their keys, in the order in which they were posted
	keys   []message.Retry
}

func (w *elsewhereWorkflows) PostEvent(req *message.Event, to message.Recipient) (workflow.Posted, error) {
	if err := w.askLed(func() { w.events = append(w.events, req.Name+"="+req.Retry.Key) }); err != nil {
		return workflow.Posted{}, err
	}
	if req.Name == "refused" {
		return workflow.Posted{}, failure.ErrQuota
	}
	if err := to.Begin(message.Turn{}); err != nil {
		return workflow.Posted{}, err
	}
	to.Answered(smallReply(req.WorkflowID, req.InstanceID, uint64(len(w.events)), false), nil)
	return workflow.Posted{}, nil
}

func (w *elsewhereWorkflows) KeepKey(_ *identity.Principal, retry message.Retry) error {
	return w.askLed(func() { w.keys = append(w.keys, retry) })
}

// askLed notes what a node that leads was asked.
func (w *elsewhereWorkflows) askLed(note func()) error {
	return w.ask(func() {
		if w.fail == nil {
			note()
		}
	})
}

// startBatchNodes starts A, which leads nothing, and B, which leads everything.
func startBatchNodes(t *testing.T) (a, b *node, ofA, ofB *elsewhereWorkflows) {
	t.Helper()
	nodes := startNodes(t, Options{}, "A", "B")
	a, b = nodes["A"], nodes["B"]
	ofA, ofB = new(elsewhereWorkflows), new(elsewhereWorkflows)
	ofA.setFail(failure.Elsewhere(7))
	a.open(func(s *Services) { s.Workflows = ofA })
	b.open(func(s *Services) { s.Workflows = ofB })
	a.peers.say(leading(b.peer))
	return a, b, ofA, ofB
}

func batchEvent(name, id string) string {
	if id != "" {
		id = `,"id":"` + id + `"`
	}
	return `{"workflowId":"leave","instanceId":"` + instanceOne + `","event":{"name":"` + name + `"` + id + `}}`
}

func (n *node) sendBatch(t *testing.T, headers []string, items ...string) answer {
	t.Helper()
	return n.do(t, request{
		Method: http.MethodPost, Path: n.kernel.Options.BasePath + "/workflow/api/v1/events",
		Headers: append([]string{"Authorization: svc.token " + tokenAnn, "Content-Type: application/json"}, headers...),
		Body:    "[" + strings.Join(items, ",") + "]",
	})
}

// TestItemsGoToTheirLeader holds gateway/INTERFACE.md, "Batches": any node takes any batch, the
// results are those of the leader, and items keep their order and their keys.
func TestItemsGoToTheirLeader(t *testing.T) {
	a, b, _, ofB := startBatchNodes(t)
	items := []string{batchEvent("one", ""), batchEvent("two", "key-2"), `{"workflowId":"leave"}`, `7`, batchEvent("refused", ""), batchEvent("three", "")}
	got := a.sendBatch(t, nil, items...)
	assert.Equal(t, "one= two=key-2 refused=", strings.Join(ofB.events, " "), "B")
	assert.Equal(t, uint64(1), a.Metrics().Forwarded, "requests were forwarded, want the items of the shard in one")
	ofB.events = nil
	want := b.sendBatch(t, nil, items...)
	assert.True(t, got.Status == http.StatusOK && got.Body == want.Body, "got  %d %s\nwant %d %s", got.Status, got.Body, want.Status, want.Body)
}

// TestABatchInGzip: what the caller can read says nothing of what the nodes send each other.
func TestABatchInGzip(t *testing.T) {
	a, _, _, ofB := startBatchNodes(t)
	items := slices.Repeat([]string{batchEvent("one", "")}, 60) // their answers would be packed
	got := a.sendBatch(t, []string{"Accept-Encoding: gzip"}, items...)
	statuses, want := batchStatuses(gunzip(t, []byte(got.Body))), strings.TrimSpace(strings.Repeat("200 ", len(items)))
	assert.True(t, statuses == want && len(ofB.events) == len(items), "got %s for %d events that were done", statuses, len(ofB.events))
}

// TestTheKeyOfABatchGoesWithItsParts holds gateway/INTERFACE.md, "Batches": wherever its items are
// done, the same items under the same key are the same requests.
func TestTheKeyOfABatchGoesWithItsParts(t *testing.T) {
	a, b, _, ofB := startBatchNodes(t)
	items := []string{`7`, batchEvent("one", ""), batchEvent("two", "key-2"), batchEvent("three", "")}
	key := []string{"Idempotency-Key: k"}
	a.sendBatch(t, key, items...)
	b.sendBatch(t, key, items...)
	n := len(ofB.events) / 2
	got, want := strings.Join(ofB.events[:n], " "), "one=k\x001 two=key-2 three=k\x003"
	assert.True(t, got == want && strings.Join(ofB.events[n:], " ") == want, "got %q, want %q twice", ofB.events, want)
	assert.True(t, len(ofB.keys) == 2 && ofB.keys[0] == ofB.keys[1] && ofB.keys[0].Key == "k", "kept %v, want the same twice", ofB.keys)
}

// TestAnItemWhoseNodeIsLost holds gateway/INTERFACE.md, "Batches": it is sent again with a key, and
// 504 without one; a connection that never was does no harm.
func TestAnItemWhoseNodeIsLost(t *testing.T) {
	a, b, ofA, ofB := startBatchNodes(t)
	lost := Peer{Node: "C", Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("reset") })}
	a.peers.say(leading(lost), leading(b.peer))
	got := a.sendBatch(t, nil, batchEvent("one", "key-1"), batchEvent("two", ""), batchEvent("three", "key-3"))
	assert.Equal(t, "200 504 504", batchStatuses(got.Body), got.Body)
	assert.Equal(t, "one=key-1", strings.Join(ofB.events, " "), "B")

	// This node leads by now.
	a.peers.say(leading(Peer{Node: "B", Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		ofA.setFail(nil)
		return nil, errors.New("reset")
	})}), leading(Peer{Node: "A"}))
	got = a.sendBatch(t, nil, batchEvent("one", "key-4"), batchEvent("two", "key-5"))
	statuses := batchStatuses(got.Body)
	assert.True(t, statuses == "200 200" && strings.Join(ofA.events, " ") == "one=key-4 two=key-5", "got %s, A got %q", statuses, ofA.events)

	// One node does not know what became of the first item, and leads no more: the second would
	// overtake it at the next.
	ofA.setFail(failure.Elsewhere(7))
	ofB.events = nil
	a.peers.say(leading(Peer{Node: "C", Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		body := `{"results":[{"status":504,"error":"OutcomeUnknown","message":"m"},{"status":421,"error":"Misdirected","message":"m"}]}`
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}, nil
	})}), leading(b.peer))
	got = a.sendBatch(t, nil, batchEvent("one", "key-4"), batchEvent("two", "key-5"))
	statuses = batchStatuses(got.Body)
	assert.True(t, statuses == "504 503" && len(ofB.events) == 0, "behind an unknown outcome: %s, B got %q", statuses, ofB.events)

	// Nobody leads.
	a.peers.say(saidLeader{})
	assert.Equal(t, "503 503", batchStatuses(a.sendBatch(t, nil, batchEvent("one", "key-6"), batchEvent("two", "")).Body), "without a leader")
}

func batchStatuses(body string) string {
	var all []string
	for _, piece := range strings.Split(body, `{"status":`)[1:] {
		all = append(all, piece[:3])
	}
	return strings.Join(all, " ")
}
