package admin

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/rs/zerolog"
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
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, o)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+o.Addr().String()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		a, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(body)
	}
	for want := 1; want <= 2; want++ { // each request reads the counters anew
		status, body := ask("GET", "/metrics")
		var got map[string]struct{ Calls int }
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || got["part"].Calls != want {
			t.Errorf("metrics: got %d %s, want 200 and %d calls", status, body, want)
		}
	}
	for _, row := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/debug/pprof/", 200},
		{"GET", "/debug/pprof/goroutine?debug=1", 200},
		{"GET", "/debug/pprof/heap", 200},
		{"GET", "/debug/pprof/symbol", 200},
		{"POST", "/metrics", 405},
		{"GET", "/", 404},
	} {
		if status, body := ask(row.method, row.path); status != row.status {
			t.Errorf("%s %s: got %d %.80s, want %d", row.method, row.path, status, body, row.status)
		}
	}
	if _, err := StartOperations(OperationsOptions{Addr: o.Addr().String(), Log: zerolog.Nop()}); err == nil {
		t.Error("a second listener on the same address: got no error")
	}
	stop(t, o) // twice does no harm
}

// TestOperationsHost holds gateway/DESIGN.md, "The operations listener": a page in the
// operator's browser whose name was made to resolve to loopback (DNS rebinding) is not
// answered.
func TestOperationsHost(t *testing.T) {
	o, err := StartOperations(OperationsOptions{Addr: "127.0.0.1:0", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, o)
	_, port, err := net.SplitHostPort(o.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for host, want := range map[string]int{
		o.Addr().String():            200,
		"127.0.0.1":                  200,
		"127.0.0.1:9000":             200, // a forwarded port
		"127.1.2.3:" + port:          200,
		"[::1]:" + port:              200,
		"[::1]":                      200,
		"localhost:" + port:          200,
		"LocalHost":                  200,
		"attacker.example":           421,
		"attacker.example:" + port:   421,
		"localhost.attacker.example": 421,
		"127.0.0.1.attacker.example": 421,
		"192.0.2.1:" + port:          421,
		"[::1":                       421,
		"::1":                        421,
	} {
		for _, path := range []string{"/metrics", "/debug/pprof/"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+o.Addr().String()+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			a, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			if a.StatusCode != want {
				t.Errorf("Host %q, %s: got %d, want %d", host, path, a.StatusCode, want)
			}
		}
	}
}

// TestServesHost holds the rule for addresses that a test cannot listen on.
func TestServesHost(t *testing.T) {
	for _, c := range []struct {
		configured, local, host string
		want                    bool
	}{
		{"0.0.0.0:8081", "192.0.2.7:8081", "metrics.example:8081", true}, // not on loopback
		{"0.0.0.0:8081", "127.0.0.1:8081", "attacker.example:8081", false},
		{"0.0.0.0:8081", "127.0.0.1:8081", "0.0.0.0:8081", true},
		{":8081", "[::1]:8081", "attacker.example", false},
		{":8081", "[::1]:8081", "", false},
		{"workstation:8081", "127.0.1.1:8081", "Workstation:8081", true},
	} {
		local, err := net.ResolveTCPAddr("tcp", c.local)
		if err != nil {
			t.Fatal(err)
		}
		if got := servesHost(c.configured, local, c.host); got != c.want {
			t.Errorf("%s at %s, Host %q: got %v, want %v", c.configured, c.local, c.host, got, c.want)
		}
	}
}
