package gateway

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/workflow"
	"troupe/persistence/clocktest"
)

// patientWorkflows keeps its answers back.
type patientWorkflows struct {
	fakeWorkflows
	asked chan workflow.Recipient
}

func (w *patientWorkflows) PostEvent(_ *workflow.EventRequest, to workflow.Recipient) (workflow.Posted, error) {
	w.asked <- to
	return workflow.Posted{}, nil
}

// TestABusyStreamEndsWhenTheServerDrains, with the answers to what it has handed over.
func TestABusyStreamEndsWhenTheServerDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := &patientWorkflows{asked: make(chan workflow.Recipient, 2)}
		s.Open(Services{Workflows: w, Credentials: fakeCredentials{}})
		body, lines := io.Pipe()
		r := httptest.NewRequest(http.MethodPost, s.options.BasePath+"/workflow/api/v1/events", body)
		r.Header.Set("Content-Type", "application/x-ndjson")
		r.Header.Set("Authorization", "svc.token "+tokenAnn)
		answer, done := httptest.NewRecorder(), make(chan struct{})
		go func() { s.ServeHTTP(answer, r); close(done) }()
		const item = `{"workflowId":"leave","instanceId":"` + instanceOne + `","event":{"name":"note"}}` + "\n"
		if _, err := io.WriteString(lines, item); err != nil {
			t.Fatal(err)
		}
		to := <-w.asked
		s.draining.Store(true)
		clocktest.Advance(time.Second)
		if _, err := io.WriteString(lines, item); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		to.Answered(smallReply("leave", instanceOne, 2, false), nil)
		synctest.Wait()
		select {
		case to := <-w.asked:
			t.Error("an item was taken while the server drained")
			to.Answered(smallReply("leave", instanceOne, 3, false), nil)
		default:
		}
		if err := lines.Close(); err != nil {
			t.Fatal(err)
		}
		<-done
		if got := answer.Body.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"status":200`) || !strings.Contains(got, `"status":503`) {
			t.Errorf("got %q, want the answer and the end", got)
		}
	})
}

// lateReader is an answer whose first deadline, which the reader of lines sets, comes behind
// the second, with which the reading is stopped.
type lateReader struct {
	http.ResponseWriter
	net.Conn
	calls           atomic.Int32
	reading, second chan struct{}
}

func (w *lateReader) Write(p []byte) (int, error) { return w.ResponseWriter.Write(p) }

func (w *lateReader) SetReadDeadline(at time.Time) error {
	switch w.calls.Add(1) {
	case 1:
		close(w.reading)
		<-w.second
	case 2:
		defer close(w.second)
	}
	return w.Conn.SetReadDeadline(at)
}

// TestTheReaderOfLinesIsStopped, also one that is just about to read.
func TestTheReaderOfLinesIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		caller, conn := net.Pipe()
		defer func() { _ = caller.Close() }()
		w := &lateReader{ResponseWriter: httptest.NewRecorder(), Conn: conn, reading: make(chan struct{}), second: make(chan struct{})}
		source := (&exchange{server: s, w: w, r: &http.Request{Body: conn}}).streamItems()
		<-w.reading
		began := time.Now()
		source.close()
		if took := time.Since(began); took != lingerMax {
			t.Errorf("stopping took %v, want %v", took, lingerMax)
		}
	})
}

// TestTheMemoryOfLinesIsCounted: that of both buffers, which take turns.
func TestTheMemoryOfLinesIsCounted(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := &exchange{server: s, w: httptest.NewRecorder(), usage: new(userUsage)}
	line := strings.Repeat("x", 3<<20)
	l := &lineReader{x: x, control: http.NewResponseController(x.w), body: strings.NewReader(line + "\n" + line + "\n" + line)}
	for c := (chunk{}); c.err == nil; {
		c = l.read()
	}
	kept := int64(cap(l.buffers[0]) + cap(l.buffers[1]))
	if most := x.bodyKept + s.options.BodyBytesMax; kept < int64(2*len(line)) || most < kept || most > 2*kept {
		t.Errorf("%d bytes were counted, two buffers have %d", most, kept)
	}
	x.releaseBody()
	if s.batchBytes.Load() != 0 || x.usage.batchBytes.Load() != 0 {
		t.Error("bytes are counted that nobody has any more")
	}
}
