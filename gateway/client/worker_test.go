package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/api"
)

// board is a service that has jobs, without a network: it runs with the clock of the test.
type board struct {
	mu      sync.Mutex
	waiting []string // ids of jobs; guarded by mu, as is the rest
	heard   []string // actions in their order
	// refuse is how an action upon a job is refused; nil or 0: it is not.
	refuse  func(action, job string) int
	away    time.Time     // nobody answers until then
	paused  string        // why it gives none
	changed chan struct{} // closed when a job came
}

const leases = 10 * time.Second // of each job

func newBoard(jobs ...string) *board {
	return &board{waiting: jobs, changed: make(chan struct{})}
}

func (b *board) add(job string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, job)
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *board) told() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.heard)
}

func (b *board) RoundTrip(r *http.Request) (*http.Response, error) {
	text, _ := io.ReadAll(r.Body)
	answer := func(status int, body any) (*http.Response, error) {
		out, _ := json.Marshal(body)
		h := http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader(out))}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.away) {
		return nil, errors.New("connection refused")
	}
	action := path.Base(r.URL.Path)
	if action == "activate" {
		return b.activate(r.Context(), text, answer)
	}
	var asked api.JobActions
	if err := json.Unmarshal(text, &asked); err != nil {
		return nil, err
	}
	var results api.JobResults
	var heard []string
	for _, j := range asked.Jobs {
		result := api.JobResult{Status: 200}
		if b.refuse != nil {
			if status := b.refuse(action, j.JobID); status != 0 {
				result = api.JobResult{Status: status, Error: "Refused", Message: fmt.Sprint("refused with ", status)}
			}
		}
		j.Lease = ""
		line, _ := encode(j)
		heard = append(heard, action+" "+strings.TrimSpace(string(line)))
		results.Results = append(results.Results, result)
	}
	b.heard = append(b.heard, strings.Join(heard, "; "))
	return answer(200, results)
}

func (b *board) activate(ctx context.Context, text []byte, answer func(int, any) (*http.Response, error)) (*http.Response, error) {
	if b.refuse != nil && b.refuse("activate", "") != 0 {
		return answer(403, api.Fault{Error: "AccessDenied", Message: "no"})
	}
	var asked api.JobActivation
	if err := json.Unmarshal(text, &asked); err != nil {
		return nil, err
	}
	if len(b.waiting) == 0 && asked.Wait != "" {
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
		case <-ctx.Done():
		}
		b.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	n := min(asked.Max, len(b.waiting))
	got := api.ActivatedJobs{Jobs: []api.Job{}, Paused: b.paused}
	for _, id := range b.waiting[:n] {
		got.Jobs = append(got.Jobs, api.Job{JobID: id, Lease: "l", Attempt: 1, Deadline: time.Now().UTC().Add(leases).Format(time.RFC3339), Data: []byte(`{}`)})
	}
	b.waiting = b.waiting[n:]
	return answer(200, got)
}

// working is a worker at a board, which has ended when stop returns.
func working(t *testing.T, b *board, w *Worker) (stop func() error) {
	t.Helper()
	c, err := New(Options{Address: "http://board", HTTP: &http.Client{Transport: b}})
	require.NoError(t, err)
	w.Client, w.Types = c, []string{"t"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func nothing(context.Context, *Job) (any, error) { return nil, nil }

// TestWorkerTells: what Handle returns is what the service hears, and what does not fit is a failed attempt.
func TestWorkerTells(t *testing.T) {
	wrong := errors.New("the card is blocked")
	done, failed := `complete {"jobId":"j"}`, `fail {"jobId":"j","message":"the card is blocked"`
	for _, c := range []struct {
		what   string
		handle func(context.Context, *Job) (any, error)
		refuse int // complete
		want   []string
	}{
		{"nothing", nothing, 0, []string{done}},
		{"an output", func(context.Context, *Job) (any, error) { return map[string]any{"id": "<1>"}, nil }, 0, []string{`complete {"jobId":"j","output":{"id":"<1>"}}`}},
		{"an error", func(context.Context, *Job) (any, error) { return nil, wrong }, 0, []string{failed + "}"}},
		{"final", func(context.Context, *Job) (any, error) { return nil, fmt.Errorf("pay: %w", Final(wrong)) }, 0, []string{`fail {"jobId":"j","message":"pay: the card is blocked","final":true}`}},
		{"later", func(context.Context, *Job) (any, error) { return nil, Later(wrong) }, 0, []string{failed + `,"later":true}`}},
		{"retry in", func(context.Context, *Job) (any, error) { return nil, RetryIn(1500*time.Millisecond, wrong) }, 0, []string{failed + `,"retryIn":"PT1.5S"}`}},
		{"no error", func(context.Context, *Job) (any, error) { return nil, Final(nil) }, 0, []string{done}},
		{"a panic", func(context.Context, *Job) (any, error) { panic("oh") }, 0, []string{`fail {"jobId":"j","message":"panic: oh"}`}},
		{"no JSON", func(context.Context, *Job) (any, error) { return func() {}, nil }, 0, []string{`fail {"jobId":"j","message":"invalid request: json: unsupported type: func()"}`}},
		{"it does not fit", func(context.Context, *Job) (any, error) { return 1, nil }, 422, []string{`complete {"jobId":"j","output":1}`, `fail {"jobId":"j","message":"refused with 422"}`}},
		{"it is lost", nothing, 409, []string{done}},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBoard("j")
				b.refuse = func(action, _ string) int {
					if action == "complete" {
						return c.refuse
					}
					return 0
				}
				stop := working(t, b, &Worker{Handle: c.handle})
				synctest.Wait()
				require.NoError(t, stop())
				assert.Equal(t, c.want, b.told())
			})
		})
	}
}

// TestWorkerKeepsLeases: they are extended while Handle runs, and what was lost ends its context and is not told.
func TestWorkerKeepsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard("long", "lost")
		b.refuse = func(action, job string) int {
			if action == "extend" && job == "lost" {
				return 409
			}
			return 0
		}
		var lost error
		var reported []error
		stop := working(t, b, &Worker{Concurrency: 2, OnError: func(err error) { reported = append(reported, err) }, Handle: func(ctx context.Context, j *Job) (any, error) {
			if j.JobID == "lost" {
				<-ctx.Done()
				lost = context.Cause(ctx)
				return "dropped", nil
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(3 * leases):
				return "done", nil
			}
		}})
		<-time.After(4 * leases)
		require.NoError(t, stop())
		refused := (*Error)(nil)
		require.ErrorAs(t, lost, &refused)
		assert.Equal(t, 409, refused.Status)
		require.Len(t, reported, 1)
		assert.ErrorContains(t, reported[0], "job lost is lost: 409 Refused")
		extended := 0
		for _, h := range b.told() {
			assert.NotContains(t, h, "dropped")
			if strings.HasPrefix(h, `extend {"jobId":"long"`) {
				extended++
			}
		}
		assert.GreaterOrEqual(t, extended, 5, "leases of %s for %s", leases, 3*leases)
		assert.Contains(t, b.told()[len(b.told())-1], `complete {"jobId":"long","output":"done"}`)
	})
}

// TestWorkerWithoutService: nothing is lost while the service is away, and what was done meanwhile is told in one request.
func TestWorkerWithoutService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard("a", "b", "c")
		begun := make(chan string, 3)
		finish := make(chan struct{})
		var failures atomic.Int64
		stop := working(t, b, &Worker{Concurrency: 3, OnError: func(error) { failures.Add(1) }, Handle: func(_ context.Context, j *Job) (any, error) {
			begun <- j.JobID
			<-finish
			return nil, nil
		}})
		for range 3 {
			<-begun
		}
		b.mu.Lock()
		b.away = time.Now().Add(leases / 2)
		b.mu.Unlock()
		close(finish)
		<-time.After(leases)
		told := 0
		for _, h := range b.told() {
			told += strings.Count(h, "complete ")
		}
		assert.Equal(t, 3, told)
		assert.Positive(t, failures.Load())
		b.add("d")
		synctest.Wait()
		require.NoError(t, stop())
		assert.Contains(t, b.told()[len(b.told())-1], `complete {"jobId":"d"}`)
	})
}

// TestWorkerStops: it takes nothing more, and ends when its jobs are done. When Base ends, they are given back.
func TestWorkerStops(t *testing.T) {
	for _, killed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBoard("a", "b")
			base, kill := context.WithCancel(t.Context())
			defer kill()
			stop := working(t, b, &Worker{Base: base, Handle: func(ctx context.Context, _ *Job) (any, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(time.Second):
					return nil, nil
				}
			}})
			synctest.Wait()
			if killed {
				time.AfterFunc(time.Millisecond, kill)
			}
			require.NoError(t, stop())
			require.Len(t, b.told(), 1)
			want := `complete {"jobId":"a"}`
			if killed {
				want = `fail {"jobId":"a","message":"context canceled","later":true}`
			}
			assert.Equal(t, want, b.told()[0])
			assert.Equal(t, []string{"b"}, b.waiting)
		})
	}
}

// TestWorkerIsRefused: who may not take jobs hears of it, once its jobs are done.
func TestWorkerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard("a")
		refused := false
		b.refuse = func(action, _ string) int {
			if action == "activate" && refused {
				return 403
			}
			return 0
		}
		c, err := New(Options{Address: "http://board", HTTP: &http.Client{Transport: b}})
		require.NoError(t, err)
		w := Worker{Client: c, Types: []string{"t"}, Concurrency: 2, Handle: func(context.Context, *Job) (any, error) {
			b.mu.Lock()
			refused = true
			b.mu.Unlock()
			<-time.After(time.Minute) // longer than the worker waits for a job
			return nil, nil
		}}
		err = w.Run(t.Context())
		answer := (*Error)(nil)
		require.ErrorAs(t, err, &answer)
		assert.Equal(t, 403, answer.Status)
		assert.Contains(t, b.told()[len(b.told())-1], `complete {"jobId":"a"}`)
	})
}

// TestWorkerHearsOfAPause: at once, and not each time that it asks.
func TestWorkerHearsOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.paused = "the store was restored"
		reported := make(chan error, 10)
		stop := working(t, b, &Worker{Handle: nothing, OnError: func(err error) { reported <- err }})
		synctest.Wait()
		require.Len(t, reported, 1, "before any time has passed")
		<-time.After(2 * time.Minute)
		require.NoError(t, stop())
		require.Len(t, reported, 1)
		assert.ErrorContains(t, <-reported, "there are no jobs: the store was restored")
	})
}

// TestWorkerHasNoMore: of many jobs it has as many at a time as it may, and each once.
func TestWorkerHasNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jobs []string
		for i := range 100 {
			jobs = append(jobs, fmt.Sprint("j", i))
		}
		b := newBoard(jobs...)
		var mu sync.Mutex
		now, most, done := 0, 0, map[string]int{}
		stop := working(t, b, &Worker{Concurrency: 8, Handle: func(_ context.Context, j *Job) (any, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-time.After(time.Second)
			mu.Lock()
			defer mu.Unlock()
			now--
			done[j.JobID]++
			return nil, nil
		}})
		<-time.After(time.Minute)
		require.NoError(t, stop())
		assert.Equal(t, 8, most)
		assert.Len(t, done, 100)
		for job, n := range done {
			assert.Equal(t, 1, n, job)
		}
	})
}
