package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/rs/zerolog"
)

func TestOperations(t *testing.T) {
	counted := 0
	o, err := StartOperations(OperationsOptions{
		Addr: "127.0.0.1:0",
		Sources: []Source{{Name: "part", Metrics: func() any {
			counted++
			return struct{ Calls int }{counted}
		}}},
		Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Stop()
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
	o.Stop() // twice does no harm
}
