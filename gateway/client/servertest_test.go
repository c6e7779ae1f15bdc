package client_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/api"
	"troupe/gateway/servertest"
)

// open sends a request and returns the answer; nil for a connection that was cut.
func open(t *testing.T, s *servertest.Server, method, path, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+api.BasePath+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Close = true
	r.Header.Set("Authorization", "svc.token "+s.Token)
	r.Header.Set("Content-Type", "application/json")
	in, err := new(http.Client).Do(r)
	if err != nil {
		return nil
	}
	return in
}

// ask is open for a whole answer; a status of 0 is a cut connection.
func ask(t *testing.T, s *servertest.Server, method, path, body string) (status int, text string) {
	t.Helper()
	in := open(t, s, method, path, body)
	if in == nil {
		return 0, ""
	}
	defer func() { _ = in.Body.Close() }()
	read, err := io.ReadAll(in.Body)
	require.NoError(t, err)
	return in.StatusCode, string(read)
}

// TestServerFaults holds that a fault comes once, in its turn, before or after the
// request was carried out.
func TestServerFaults(t *testing.T) {
	s := servertest.Start(t)
	s.Fail("create", servertest.Fault{Status: 503, Code: "Busy"}, servertest.Fault{}, servertest.Fault{Status: 504, Done: true}, servertest.Fault{Done: true})
	for n, want := range []struct{ status, instances int }{{503, 0}, {0, 0}, {504, 1}, {0, 2}, {200, 3}} {
		status, text := ask(t, s, "POST", "/create", `{"workflowId":"leave"}`)
		assert.Equal(t, want.status, status, "request %d, %s", n, text)
		_, text = ask(t, s, "GET", "/instances/leave", "")
		assert.Equal(t, want.instances, strings.Count(text, `"_id"`), "request %d: got %s", n, text)
	}
	r := s.Requests()
	assert.True(t, len(r) == 10 && r[0].Body == `{"workflowId":"leave"}` && r[1].Path == "/workflow/api/v1/instances/leave", "got the requests %+v", r)
}

// TestServerDrain holds that a stream has ended when Drain returns, and that what comes
// then is not in it.
func TestServerDrain(t *testing.T) {
	s := servertest.Start(t)
	id := s.Create(`{}`)
	stream := open(t, s, "GET", "/watch/leave/"+id, "")
	defer func() { _ = stream.Body.Close() }()
	s.Send(id, "submit")
	s.Drain()
	s.Send(id, "approve")
	text, err := io.ReadAll(stream.Body)
	assert.True(t, err == nil && strings.HasPrefix(string(text), "retry: ") && !strings.Contains(string(text), "approve"), "%v %v", text, err)
}

func TestServerOfNobody(t *testing.T) {
	address := servertest.Nobody(t)
	if c, err := net.Dial("tcp", address); err == nil {
		_ = c.Close()
		t.Errorf("somebody listens at %s", address)
	}
	if l, err := net.Listen("tcp", address); err == nil {
		_ = l.Close()
		t.Errorf("anybody may listen at %s", address)
	}
}
