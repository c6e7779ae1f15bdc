package ceiling

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"troupe/bench/load"
)

// call sends one request and decodes the record of the answer.
func call(t *testing.T, s *Server, method, path, body string) record {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	text, _ := io.ReadAll(w.Result().Body)
	var reply struct {
		State record `json:"state"`
	}
	if err := json.Unmarshal(text, &reply); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s %s: got %d %s, %v", method, path, w.Code, text, err)
	}
	return reply.State
}

func TestBothCeilingsAnswerLikeTheInterface(t *testing.T) {
	for name, dir := range map[string]string{"http": "", "durable": t.TempDir() + "/store"} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			created := call(t, s, "POST", "/workflow/api/v1/create", `{"workflowId":"w","data":{"svcPublic":{"a":1}}}`)
			if len(created.ID) != 26 || created.States[0].Node != "draft" {
				t.Errorf("created: got %+v", created)
			}
			moved := call(t, s, "POST", "/workflow/api/v1/event",
				`{"workflowId":"w","instanceId":"`+created.ID+`","event":{"name":"submit","data":{"b":2}}}`)
			if moved.States[0].Node != "review" || moved.Public["b"] != 2.0 || moved.History[0].Event != "submit" {
				t.Errorf("moved: got %+v", moved)
			}
			read := call(t, s, "GET", "/workflow/api/v1/instance/w/"+created.ID, "")
			if read.States[0].Node != "review" {
				t.Errorf("read: got %+v", read)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if dir != "" {
				checkStored(t, dir, created.ID)
			}
		})
	}
}

// checkStored demands that the store has the record after the event.
func checkStored(t *testing.T, dir, id string) {
	t.Helper()
	db, err := pebble.Open(dir, &pebble.Options{Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	value, closer, err := db.Get([]byte(id))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closer.Close() }()
	if !strings.Contains(string(value), `"nodeId":"review"`) {
		t.Errorf("stored: got %s", value)
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	s, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "/workflow/api/v1/instance/w/x", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("got %d, want 404", w.Code)
	}
}

// TestTheLoadGeneratorAcceptsItsAnswers of every kind. A disk that stands still
// may leave none of a kind in a window; then it is repeated with a longer one.
func TestTheLoadGeneratorAcceptsItsAnswers(t *testing.T) {
	s, err := Open(t.TempDir() + "/store")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	for _, minimal := range []bool{false, true} {
		kinds := 0
		for window := 200 * time.Millisecond; kinds < 3 && window < 15*time.Second; window *= 4 {
			result, err := load.Run(context.Background(), load.Options{
				Addr: server.Listener.Addr().String(), Connections: 4, Instances: 10, Minimal: minimal,
				Mix: load.Mix{1, 8, 1}, WarmUp: -1, Duration: window,
			})
			if err != nil {
				t.Fatal(err)
			}
			if kinds = len(result.Kinds); result.Failed() != 0 {
				t.Fatalf("minimal %t, %v: got %d answers of %d kinds and the errors %v", minimal, window, result.All.Count, kinds, result.Errors)
			}
		}
		if kinds != 3 {
			t.Errorf("minimal %t: got answers of %d kinds even in the longest window, want 3", minimal, kinds)
		}
	}
	server.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
