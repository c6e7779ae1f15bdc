package overload

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/bench/internal/ceiling"
	"troupe/bench/load"
)

// TestMain makes this test binary the program that is measured when it is started with
// one of its commands: a server without a store that refuses every fourth event.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "token" {
		_, _ = os.Stdout.WriteString("secret\n")
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		if err := serve(os.Args[2:]); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// faulty in the environment makes the server answer 500 instead of refusing.
const faulty = "OVERLOAD_TEST_FAULTY"

func serve(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	listen := flags.String("listen", "", "")
	for _, unused := range []string{"home", "drain-max", "requests-max"} {
		flags.String(unused, "", "")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := ceiling.Open("")
	if err != nil {
		return err
	}
	refusal := http.StatusServiceUnavailable
	if os.Getenv(faulty) != "" {
		refusal = http.StatusInternalServerError
	}
	var events atomic.Int64
	server := &http.Server{Addr: *listen, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/event") && events.Add(1)%4 == 0 {
			w.WriteHeader(refusal)
		} else {
			s.ServeHTTP(w, r)
		}
	})}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return s.Close()
}

func TestARunLeavesARecordAndNothingElse(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	// Under the race detector every program sleeps a second before it exits.
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "record.md")
	t.Setenv("TMPDIR", dir)
	var out, errs bytes.Buffer
	for _, window := range []string{"50ms", "200ms", "1s"} { // a machine may stand still for a while
		err = Commands[0].Main(t.Context(), []string{
			"-program", self, "-loads", "0.5,1,deaf", "-rounds", "2", "-duration", window, "-warmup", "1ms", "-share", "0",
			"-connections", "4", "-o", file, "--", "--requests-max", "9",
		}, &out, &errs)
		if !errors.Is(err, errNoEvent) {
			break
		}
	}
	require.NoError(t, err, errs.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, part := range []string{
		"| Command | `go run ./bench overload -program", "| Commit |", "`troupe serve --requests-max 9`", "no share was asked for",
		"\n| 0.5 | ", "\n| 1 | ", "\n| deaf | ", "- deaf: ten times",
	} {
		assert.Contains(t, string(text), part, "the record lacks")
	}
	assert.NotContains(t, string(text), "Errors:", "the record has errors")
	left, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(left) <= 0, "left behind: %v, %v", left, err)
}

// TestErrorsLeaveNoRecord: the table is shown, and the errors end the run.
func TestErrorsLeaveNoRecord(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	t.Setenv(faulty, "1")
	file := filepath.Join(t.TempDir(), "record.md")
	var out, errs bytes.Buffer
	for _, window := range []string{"50ms", "200ms", "1s"} { // a machine may stand still for a while
		err = Commands[0].Main(t.Context(), []string{
			"-program", self, "-loads", "0.5", "-rounds", "1", "-duration", window, "-warmup", "1ms", "-share", "0", "-connections", "4", "-o", file,
		}, &out, &errs)
		if err == nil { // so few events that none of them failed
			_ = os.Remove(file)
		} else if !errors.Is(err, errNoEvent) {
			break
		}
	}
	assert.True(t, err != nil && strings.Contains(err.Error(), "load 0.5, round 1: ") && strings.Contains(out.String(), "**Errors:**"), "got %v\n%s", err, out.String())
	_, err = os.Stat(file)
	assert.ErrorIs(t, err, os.ErrNotExist, "there is a record")
}

// TestWhatComesTooLateIsNotUseful counts four answers, of which so many came in time.
func TestWhatComesTooLateIsNotUseful(t *testing.T) {
	for inTime := range 5 {
		var r load.Result
		for i := range 4 {
			if i < inTime {
				r.Latencies.Record(usefulMax)
			} else {
				r.Latencies.Record(usefulMax * 101 / 100)
			}
		}
		r.All = r.Latencies.Summary(time.Second)
		assert.Equal(t, float64(inTime), (&result{Result: &r}).useful(), inTime)
	}
	assert.Zero(t, (&result{Result: &load.Result{}}).useful())
}

// TestThePeakIsTheMost: a load has no more than the best one, and the closed loop counts.
func TestThePeakIsTheMost(t *testing.T) {
	of := func(perSecond int64) *result {
		l := &load.Result{}
		for range perSecond {
			l.Latencies.Record(time.Millisecond)
		}
		l.All = l.Latencies.Summary(time.Second)
		return &result{Result: l}
	}
	for capacity, peak := range map[float64]float64{100: 200, 250: 250} {
		all := []*result{of(50), of(200)}
		comparePeak(all, capacity)
		assert.Equal(t, []float64{peak, peak}, []float64{all[0].peak, all[1].peak})
		assert.Equal(t, 50/peak, columns[3].of(all[0]), "of the peak")
	}
}
