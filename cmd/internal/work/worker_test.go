package work

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
)

// board is a service with one job, which goes when it was given.
type board struct {
	mu     sync.Mutex
	given  bool                    // guarded by mu
	refuse func(action string) int // nil: nothing
	told   chan string             // actions but extensions
	asked  chan string             // extensions
	lease  time.Duration           // of the job
	data   json.RawMessage         // likewise
}

func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	action := path.Base(r.URL.Path)
	if action == "activate" {
		b.mu.Lock()
		given := b.given
		b.given = true
		b.mu.Unlock()
		jobs := api.ActivatedJobs{Jobs: []api.Job{}}
		_, _ = io.Copy(io.Discard, r.Body) // NB: else nobody looks whether the caller has gone
		if given {
			<-r.Context().Done()
			return
		}
		jobs.Jobs = append(jobs.Jobs, api.Job{
			JobID: "i-3-0", Lease: "l", Type: "charge", WorkflowID: "order", Version: 2, InstanceID: "i", StateMachineID: "main", NodeID: "charging", Attempt: 2, AttemptsLeft: 1,
			Deadline: time.Now().Add(b.lease).UTC().Format(time.RFC3339Nano), Data: b.data, Traceparent: "00-a-b-01",
		})
		_ = json.NewEncoder(w).Encode(jobs)
		return
	}
	var in api.JobActions
	_ = json.NewDecoder(r.Body).Decode(&in)
	result := api.JobResult{Status: 200}
	if b.refuse != nil {
		if status := b.refuse(action); status != 0 {
			result = api.JobResult{Status: status, Error: "Refused", Message: fmt.Sprint("refused with ", status)}
		}
	}
	j := in.Jobs[0]
	line, _ := json.Marshal(map[string]any{"output": j.Output, "message": j.Message, "later": j.Later})
	to := b.told
	if action == "extend" {
		to = b.asked
	}
	select {
	case to <- action + " " + string(line):
	default:
	}
	_ = json.NewEncoder(w).Encode(api.JobResults{Results: []api.JobResult{result}})
}

// started is a worker that has begun.
type started struct {
	*board
	stderr *lines
	exit   chan int
}

// lines is what was written, and tells of each piece.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// await waits for words.
func (l *lines) await(words string) {
	for {
		l.mu.Lock()
		has := strings.Contains(l.text.String(), words)
		l.mu.Unlock()
		if has {
			return
		}
		<-l.more
	}
}

// begin starts a worker whose program is a script of the shell. One that is not stopped by the test is by its end.
func begin(t *testing.T, b *board, script string, args ...string) *started {
	t.Helper()
	b.told, b.asked = make(chan string, 10), make(chan string, 10)
	if b.lease == 0 {
		b.lease = time.Hour
	}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("tok_aaaaaaaaaaaaaaaa.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"), 0o600))
	s := &started{b, &lines{more: make(chan struct{}, 1)}, make(chan int, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	root := cli.NewRoot("", "", Commands()...)
	root.SetContext(ctx)
	line := append([]string{"worker", "--type", "charge", "--address", server.URL, "--token-file", token}, args...)
	go func() {
		s.exit <- cli.Run(root, append(line, "--", "sh", "-c", script), strings.NewReader(""), &bytes.Buffer{}, s.stderr)
	}()
	return s
}

// interrupt sends the process of the test, which is the worker's, what ends it.
func interrupt(t *testing.T) {
	t.Helper()
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
}

// TestWorkerRunsPrograms: what a program does becomes what the service hears.
func TestWorkerRunsPrograms(t *testing.T) {
	for _, c := range []struct {
		what, script string
		refuse       int // complete
		want         []string
	}{
		{"its output", `cat`, 0, []string{`complete {"later":false,"message":"","output":{"amount":12.50}}`}},
		{"nothing", `exit 0`, 0, []string{`complete {"later":false,"message":"","output":null}`}},
		{
			"its environment",
			`echo "\"$TROUPE_JOB_ID $TROUPE_JOB_TYPE $TROUPE_ATTEMPT $TROUPE_ATTEMPTS_LEFT $TROUPE_WORKFLOW_ID $TROUPE_WORKFLOW_VERSION $TROUPE_INSTANCE_ID $TROUPE_STATE_MACHINE_ID $TROUPE_NODE_ID $TRACEPARENT\""`, 0,
			[]string{`complete {"later":false,"message":"","output":"i-3-0 charge 2 1 order 2 i main charging 00-a-b-01"}`},
		},
		{"it fails", `echo first >&2; echo 'the card is blocked' >&2; echo >&2; exit 3`, 0, []string{`fail {"later":false,"message":"the card is blocked","output":null}`}},
		{"it fails without a word", `exit 3`, 0, []string{`fail {"later":false,"message":"exit status 3","output":null}`}},
		{"later", `printf 'not now' >&2; exit 75`, 0, []string{`fail {"later":true,"message":"not now","output":null}`}},
		{"no JSON", `echo paid`, 0, []string{`fail {"later":false,"message":"the output is not JSON: invalid character 'p' looking for beginning of value","output":null}`}},
		{"too much", `yes`, 0, []string{`fail {"later":false,"message":"the output is larger than 4 MiB","output":null}`}},
		{"it does not fit", `echo 7`, 422, []string{`complete {"later":false,"message":"","output":7}`, `fail {"later":false,"message":"refused with 422","output":null}`}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := begin(t, &board{data: []byte(`{"amount":12.50}`), refuse: func(action string) int {
				if action == "complete" {
					return c.refuse
				}
				return 0
			}}, c.script)
			for _, want := range c.want {
				assert.Equal(t, want, <-s.told)
			}
			interrupt(t)
			assert.Equal(t, cli.ExitDone, <-s.exit)
		})
	}
}

// pipe is a file from which a program reads what the test writes.
func pipe(t *testing.T) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	return name
}

// TestWorkerEndsWithItsPrograms: the first signal has it wait for them, the second one kills them.
func TestWorkerEndsWithItsPrograms(t *testing.T) {
	for _, kills := range []bool{false, true} {
		t.Run(fmt.Sprint("kills ", kills), func(t *testing.T) {
			name := pipe(t)
			s := begin(t, &board{}, `echo begun >&2; read x <`+name+`; echo "$x"`)
			s.stderr.await("begun")
			interrupt(t)
			s.stderr.await("The worker ends when")
			want := `complete {"later":false,"message":"","output":{"paid":1}}`
			if kills {
				want = `fail {"later":true,"message":"begun","output":null}`
				interrupt(t)
			} else {
				require.NoError(t, os.WriteFile(name, []byte(`{"paid":1}`+"\n"), 0o600))
			}
			assert.Equal(t, want, <-s.told)
			assert.Equal(t, cli.ExitDone, <-s.exit)
		})
	}
}

// TestWorkerKillsWhatIsLost: the program of a job that another one has, and what it has started.
func TestWorkerKillsWhatIsLost(t *testing.T) {
	name := pipe(t)
	s := begin(t, &board{lease: time.Second, refuse: func(string) int { return 409 }}, `(read x <`+name+`; echo alive >&2) & wait; echo also alive >&2`)
	assert.Contains(t, <-s.asked, "extend")
	s.stderr.await("job i-3-0 is lost: 409 Refused")
	interrupt(t)
	assert.Equal(t, cli.ExitDone, <-s.exit)
	assert.Empty(t, s.told)
	s.stderr.mu.Lock()
	defer s.stderr.mu.Unlock()
	assert.NotContains(t, s.stderr.text.String(), "alive")
}

// TestWorkerIsAsked: what makes no sense is said at once.
func TestWorkerIsAsked(t *testing.T) {
	for _, args := range []string{"worker -- true", "worker --type t", "worker --type t -- /no/such/program", "worker --type t --concurrency 0 -- true", "worker --type t --lease 10ms -- true"} {
		var stderr bytes.Buffer
		assert.Equal(t, cli.ExitUsage, cli.Run(cli.NewRoot("", "", Commands()...), strings.Fields(args), strings.NewReader(""), &bytes.Buffer{}, &stderr), "%s: %s", args, &stderr)
	}
}
