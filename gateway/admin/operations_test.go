package admin

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOperations(t *testing.T) {
	counted := 0
	o, err := StartOperations(OperationsOptions{
		Addr: "127.0.0.1:0",
		Sources: []MetricsSource{{Name: "part", Metrics: func() any {
			counted++
			return struct{ Calls int }{counted}
		}}},
		Log: zerolog.Nop(),
	})
	require.NoError(t, err)
	defer stop(t, o)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, path, host string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+o.Addr().String()+path, http.NoBody)
		require.NoError(t, err)
		req.Host = host
		a, err := client.Do(req)
		require.NoError(t, err)
		defer func() { _ = a.Body.Close() }()
		body, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		return a.StatusCode, string(body)
	}
	for want := 1; want <= 2; want++ { // each request reads the counters anew
		status, body := ask("GET", "/metrics", "")
		var got map[string]struct{ Calls int }
		assert.True(t, json.Unmarshal([]byte(body), &got) == nil && status == 200 && got["part"].Calls == want, "%v %v %v", status, body, want)
	}
	for _, row := range []struct {
		method, path, host string
		status             int
	}{
		{"GET", "/debug/pprof/", "localhost", 200},
		{"GET", "/debug/pprof/goroutine?debug=1", "", 200},
		{"GET", "/debug/pprof/heap", "", 200},
		{"GET", "/debug/pprof/symbol", "", 200},
		{"POST", "/metrics", "", 405},
		{"GET", "/", "", 404},
		{"GET", "/metrics", "attacker.example", 421},
		{"GET", "/debug/pprof/", "attacker.example", 421},
	} {
		status, body := ask(row.method, row.path, row.host)
		assert.Equal(t, row.status, status, "%s %s of %q, %.80s", row.method, row.path, row.host, body)
	}
	_, err = StartOperations(OperationsOptions{Addr: o.Addr().String(), Log: zerolog.Nop()})
	assert.Error(t, err, "a second listener on the same address: got no error")
	stop(t, o) // twice does no harm
}

// TestServesHost holds gateway/DESIGN.md, "The operations listener": a page in the
// operator's browser whose name was made to resolve to loopback (DNS rebinding) is not
// answered.
func TestServesHost(t *testing.T) {
	for _, c := range []struct {
		configured, local string
		hosts, foreign    []string
	}{
		{
			"127.0.0.1:8081", "127.0.0.1:8081",
			[]string{"127.0.0.1:8081", "127.0.0.1", "127.0.0.1:9000", "127.1.2.3:8081", "[::1]:8081", "[::1]", "localhost:8081", "LocalHost"},
			[]string{
				"attacker.example", "attacker.example:8081", "localhost.attacker.example", "127.0.0.1.attacker.example", "192.0.2.1:8081", "[::1", "::1",
			},
		},
		{"0.0.0.0:8081", "192.0.2.7:8081", []string{"metrics.example:8081"}, nil}, // not on loopback
		{"0.0.0.0:8081", "127.0.0.1:8081", []string{"0.0.0.0:8081"}, []string{"attacker.example:8081"}},
		{":8081", "[::1]:8081", nil, []string{"attacker.example", ""}},
		{"workstation:8081", "127.0.1.1:8081", []string{"Workstation:8081"}, nil},
	} {
		local, err := net.ResolveTCPAddr("tcp", c.local)
		require.NoError(t, err)
		for _, host := range append(c.hosts, c.foreign...) {
			assert.Equal(t, slices.Contains(c.hosts, host), servesHost(c.configured, local, host), "%s at %s, Host %q", c.configured, c.local, host)
		}
	}
}
