package ceiling

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shown is what a test looks at in an answer.
type shown struct {
	ID      string          `json:"_id"`
	Public  json.RawMessage `json:"svcPublic"`
	Private json.RawMessage `json:"svcPrivate"`
	History []struct {
		Event string    `json:"transitionEvent"`
		Start []string  `json:"startState"`
		End   []string  `json:"endState"`
		At    time.Time `json:"ts"`
	} `json:"svcHistory"`
	States []struct {
		Node string `json:"nodeId"`
	} `json:"states"`
}

// call sends one request and decodes the record of the answer.
func call(t *testing.T, s *Server, method, path, body string) shown {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	text, _ := io.ReadAll(w.Result().Body)
	var reply struct {
		State shown `json:"state"`
	}
	err := json.Unmarshal(text, &reply)
	require.True(t, err == nil && w.Code == http.StatusOK, "%s %s: got %d %s, %v", method, path, w.Code, text, err)
	return reply.State
}

// exercise creates an instance, sends one event and returns the instance's id.
func exercise(t *testing.T, s *Server) string {
	t.Helper()
	created := call(t, s, "POST", "/workflow/api/v1/create", `{"workflowId":"w","data":{"svcPublic":{"a":1}}}`)
	assert.True(t, len(created.ID) == 26 && created.States[0].Node == "draft" && string(created.Public) == `{"a":1}`, "created: got %+v", created)
	moved := call(t, s, "POST", "/workflow/api/v1/event",
		`{"workflowId":"w","instanceId":"`+created.ID+`","event":{"name":"submit","data":{"b":2}}}`)
	assert.True(t, moved.States[0].Node == "review" && string(moved.Private) == `{"b":2}` && len(moved.History) == 2 && moved.History[1].Event == "submit", moved)
	read := call(t, s, "GET", "/workflow/api/v1/instance/w/"+created.ID, "")
	assert.True(t, read.States[0].Node == "review" && len(read.History) == 2 && !read.History[1].At.IsZero(), "read: got %+v", read)
	return created.ID
}

func TestTheHTTPCeilingAnswersLikeTheInterface(t *testing.T) {
	s, err := Open("")
	require.NoError(t, err)
	exercise(t, s)
	assert.NoError(t, s.Close())
}

// TestWhatTheDurableCeilingAnsweredSurvivesALossOfPower takes what was synced when
// the last answer came, and reads the record and both entries back.
func TestWhatTheDurableCeilingAnsweredSurvivesALossOfPower(t *testing.T) {
	files := vfs.NewCrashableMem()
	s, err := openStore("store", files)
	require.NoError(t, err)
	id := exercise(t, s)
	left := files.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, s.Close())
	db, err := pebble.Open("store", &pebble.Options{FS: left, Logger: quiet{}})
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	for key, want := range map[string]string{
		id:                                      `"nodeId":"review"`,
		id + "\x00\x00\x00\x00\x00\x00\x00\x01": `"transitionEvent":"","endState":["draft"]`,
		id + "\x00\x00\x00\x00\x00\x00\x00\x02": `"startState":["draft"],"transitionEvent":"submit"`,
	} {
		value, closer, err := db.Get([]byte(key))
		if !assert.NoError(t, err, key) {
			continue
		}
		assert.True(t, json.Valid(value) && strings.Contains(string(value), want), "%q: got %s, want %s in it", key, value, want)
		_ = closer.Close()
	}
}

func TestStatuses(t *testing.T) {
	s, err := Open("")
	require.NoError(t, err)
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/readyz", "", http.StatusOK},
		{"GET", "/workflow/api/v1/instance/w/x", "", http.StatusNotFound},
		{"POST", "/workflow/api/v1/event", `{"instanceId":"x"}`, http.StatusNotFound},
		{"POST", "/workflow/api/v1/event", `{`, http.StatusBadRequest},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		assert.Equal(t, c.want, w.Code, "%v %v %v", c.method, c.path, c.body)
	}
}
