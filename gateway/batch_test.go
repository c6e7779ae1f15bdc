package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/gateway/internal/instances"
	"troupe/persistence/clocktest"
)

// patientWorkflows keeps its answers back.
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

// startPatient makes a server whose workflows keep their answers back.
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

// send sends so many items.
func (s *stream) send(t *testing.T, n int) {
	t.Helper()
	const item = `{"workflowId":"leave","instanceId":"` + instanceOne + `","event":{"name":"note"}}` + "\n"
	_, err := io.WriteString(s.lines, strings.Repeat(item, n))
	require.NoError(t, err)
	synctest.Wait()
}

// end ends the lines, and returns the answer.
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
		if got := s.end(t); !strings.Contains(got, `"status":400`) || s.answer.Header().Get("Connection") != "close" {
			t.Errorf("got %v %q", s.answer.Header(), got)
		}
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
