package fairness

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/statemachine"
)

// TestMain makes this test binary the program that is measured when it is started with one of its commands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"token", "session", "password"}, os.Args[1]) {
		_, _ = os.Stdout.WriteString("secret\n")
		return
	}
	if len(os.Args) == 2 && os.Args[1] == politeCommand {
		if err := Commands[1].Main(context.Background(), nil, os.Stdout, os.Stderr); err != nil {
			panic(err)
		}
		return
	}
	if i := slices.Index(os.Args, "--listen"); i > 0 {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		s := &http.Server{Addr: os.Args[i+1], ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(agree)}
		defer context.AfterFunc(ctx, func() { _ = s.Close() })()
		if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// agree answers everything with 200.
func agree(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = w.Write([]byte(`{"instanceId":"01"}`))
}

func TestARunLeavesARecordAndNothingElse(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	// Under the race detector every program sleeps a second before it exits.
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	dir, record := t.TempDir(), filepath.Join(t.TempDir(), "record.md")
	t.Setenv("TMPDIR", dir)
	var out, errs bytes.Buffer
	err = Commands[0].Main(t.Context(), []string{
		"-program", self, "-attacks", "slow-bodies,watches,author-tasks", "-duration", "50ms", "-warmup", "0s",
		"-records", "10", "-tasks", "10", "-loops", "2", "-connections", "2", "-o", record, "--", "--requests-max", "9",
	}, &out, &errs)
	require.NoError(t, err, errs.String())
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	for _, part := range []string{
		"| Command | `go run ./bench fairness -program", "| Commit |", "--drain-max 1s --requests-max 9`", "### nobody: no attack",
		"### slow-bodies: ", "### watches: ", "| livez, new connection |",
	} {
		assert.Contains(t, string(text), part, "the record lacks")
	}
	left, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(left) <= 0, "left behind: %v, %v", left, err)
}

// hostileTo makes a hostile user of a server, with a context that the server ends.
func hostileTo(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, stop func())) (context.Context, *hostile) {
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, stop) }))
	t.Cleanup(server.Close)
	e := newHostile(server.Listener.Addr().String(), &home{hostile: credentials{"t", "c"}, hostileIDs: []string{"01"}}, &measurement{loops: 1, connections: 1})
	t.Cleanup(e.close)
	return ctx, e
}

func TestALoopCountsWhatItWasAnswered(t *testing.T) {
	var asked atomic.Int64
	ctx, e := hostileTo(t, func(w http.ResponseWriter, r *http.Request, stop func()) {
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		assert.True(t, from == hostileAddr && r.Header.Get("Authorization") == "svc.token t", "got a request from %s with %q", from, r.Header)
		switch asked.Add(1) {
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"message":"later"}`))
		case 3:
			stop()
		}
	})
	e.loop(ctx, e.caller, 1, e.floodEvents)
	want := map[string]int64{"status 200": 1, "status 503 (later)": 1}
	assert.True(t, maps.Equal(e.got.Outcome(time.Second).Errors, want), "got %v, want %v", e.got.Outcome(time.Second).Errors, want)
}

func TestAnAttackEndsWithItsBudget(t *testing.T) {
	ctx, e := hostileTo(t, func(http.ResponseWriter, *http.Request, func()) {})
	e.budget.Store(3)
	e.loop(ctx, e.caller, 2, e.floodEvents)
	assert.Equal(t, int64(3), e.got.Outcome(time.Second).Errors["status 200"], "got %v, want three answers", e.got.Outcome(time.Second).Errors)
}

// TestASlowBodyGoesOn until the attack is over: the server sees the bracket and two more bytes.
func TestASlowBodyGoesOn(t *testing.T) {
	ctx, e := hostileTo(t, func(_ http.ResponseWriter, r *http.Request, stop func()) {
		_, err := io.ReadFull(r.Body, make([]byte, 3))
		assert.NoError(t, err)
		stop()
	})
	e.hold(ctx, 1, slowBody(e.caller, workflowPath+"/event"), trickle)
	want := map[string]int64{"held to the end without an answer": 1}
	assert.True(t, maps.Equal(e.got.Outcome(time.Second).Errors, want), "got %v, want %v", e.got.Outcome(time.Second).Errors, want)
}

func TestAHeldConnectionTellsItsStatusAndHowItEnded(t *testing.T) {
	var asked atomic.Int64
	ctx, e := hostileTo(t, func(w http.ResponseWriter, _ *http.Request, stop func()) {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			panic(http.ErrAbortHandler) // closes the connection
		case 3:
			stop()
		}
	})
	e.hold(ctx, 1, e.raw("/livez", ""), 0)
	want := map[string]int64{"status 429": 1, "closed without an answer": 1, "held to the end without an answer": 1}
	assert.True(t, maps.Equal(e.got.Outcome(time.Second).Errors, want), "got %v, want %v", e.got.Outcome(time.Second).Errors, want)
}

// TestThePoliteUserCountsEveryRequestOnce under the kind that it is of.
func TestThePoliteUserCountsEveryRequestOnce(t *testing.T) {
	var asked, connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/livez" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	p := newPolite(server.Listener.Addr().String(), &home{polite: credentials{"t", "c"}, politeIDs: []string{"01", "02"}})
	defer p.close()
	p.waitMax = time.Hour // a slow machine is no error
	p.run(t.Context(), 1000, time.Now(), 0, 200*time.Millisecond)
	var counted, livez int64
	for i, k := range kinds {
		o := p.observed[i].Outcome(time.Second)
		failed := o.Failed()
		counted += o.Count + failed
		if k.fresh {
			livez = o.Errors["status 503"]
		} else if failed > 0 {
			t.Errorf("%s: got the errors %v", k.name, o.Errors)
		}
	}
	if counted == 0 || counted != asked.Load() || livez == 0 || connections.Load() <= livez {
		t.Errorf("got %d counted of %d, %d refused, %d connections", counted, asked.Load(), livez, connections.Load())
	}
}

func TestAReportComparesWithTheBaseline(t *testing.T) {
	at := func(name string, p99 time.Duration, errors map[string]int64) *phase {
		p := &phase{
			Attack: name, What: "what it is", Kinds: map[string]*harness.Outcome{}, Hostile: map[string]int64{"status 200": 1, "status 503": 5},
			All: load.Summary{Latency: load.Latency{P99Ms: 2}},
		}
		for _, k := range kinds {
			p.Kinds[k.name] = &harness.Outcome{Summary: load.Summary{Count: 10, Latency: load.Latency{P99Ms: 2}}}
		}
		p.Kinds["query"] = &harness.Outcome{Summary: load.Summary{Count: 10, Latency: load.Latency{P99Ms: harness.Milliseconds(p99)}}, Errors: errors}
		return p
	}
	text := report([]*phase{at("nobody", time.Millisecond, nil), at("flood", 30*time.Millisecond, map[string]int64{"status 503": 4})})
	for _, part := range []string{"| flood | 90 | 4 | 1.0 | 30.0 | query |", "| 5 status 503, 1 status 200 |", "| query | 10 | 0.00 | 30.00 | 0.00 | 30.0 | 4 status 503 |"} {
		assert.Contains(t, text, part, "the report lacks")
	}
}

// TestALinkHasItsBytesASecond each way, for all connections together.
func TestALinkHasItsBytesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const megabits = 8 // a million bytes a second
		over := newLink(megabits)
		text := strings.Repeat("x", 1_000_000+linkBurst)
		begun := time.Now()
		for range 2 {
			here, there := net.Pipe()
			got := make(chan []byte)
			go func() {
				all, _ := io.ReadAll(there)
				got <- all
			}()
			c := over.carry(here)
			n, err := io.WriteString(c, text)
			require.True(t, n == len(text) && err == nil, "sent %d, %v", n, err)
			_ = c.Close()
			assert.Equal(t, string([]byte(text)), string(<-got), "something else has come")
		}
		const want = 2*time.Second + linkBurst*time.Microsecond // a burst goes at once
		took := time.Since(begun)
		assert.LessOrEqual(t, (took - want).Abs(), time.Millisecond, "it took %s, want %s", took, want)
		here, there := net.Pipe()
		go func() {
			_, _ = io.WriteString(there, text)
			_ = there.Close()
		}()
		begun = time.Now()
		all, err := io.ReadAll(over.carry(here))
		assert.True(t, len(all) == len(text) && err == nil, "read %d, %v", len(all), err)
		took = time.Since(begun)
		assert.LessOrEqual(t, (took - time.Second).Abs(), time.Millisecond, "the way back took %s, want a second", took)
	})
}

// TestWhatAnAuthorPublishesIsADefinition: an attack that is refused is refused for its cost, not for a slip.
func TestWhatAnAuthorPublishesIsADefinition(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	texts := map[string]string{
		"clock": schedules(100), "spin": spinning, "hidden": hidden, "fork": forking(), "wide": wide(), "guarded": guards(5, 2000),
		"doubling": doubling(5), "pattern": patterned(2, 100),
	}
	for id, text := range texts {
		if parsed, err := parser.Parse(statemachine.Source{File: id + ".yaml", Text: []byte(text)}); err != nil {
			t.Errorf("%s: %v", id, err)
		} else if string(parsed.ID) != id {
			t.Errorf("%s: got the id %q", id, parsed.ID)
		}
	}
}
