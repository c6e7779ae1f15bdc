package endtoend

import (
	"bufio"
	"errors"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

// TestDrain ends the program by SIGTERM under load. Every accepted request must
// be answered, new ones must be refused, and nothing acknowledged may be missing
// after a restart (persistence/PROMISES.md, "P12"; persistence/PROMISES.md,
// "P16"; gateway/INTERFACE.md, "Stopping").
func TestDrain(t *testing.T) {
	for name, args := range map[string][]string{
		"at once": nil, "with a delay for load balancers": {"--drain-delay", "200ms"},
	} {
		t.Run(name, func(t *testing.T) { drain(t, args) })
	}
}

func drain(t *testing.T, args []string) {
	// NB: how long draining may take is held by TestDrainDelay of the gateway, on a virtual clock. Here
	// nothing may depend on how busy the machine is.
	p := start(t, newHome(t, map[string]string{"workflows/load.yaml": loadFlow}), append(args, "--drain-max", "2m")...)
	token := p.home.token("ann")
	address, err := p.log.listening()
	require.NoError(t, err)
	l := newLedger()
	var refusals, ends, terminated atomic.Int64
	var done sync.WaitGroup
	enough := make(chan struct{}, 1)
	for _, w := range newWorkers(32, l, token, seed(t)) {
		done.Go(func() {
			defer w.link.close()
			for {
				switch w.step(address) {
				case acknowledged:
					if w.sent == 30 {
						select {
						case enough <- struct{}{}:
						default:
						}
					}
					continue
				case refused:
					if terminated.Load() == 0 && w.pending == nil {
						continue // a list may wait for its turn in vain
					}
					refusals.Add(1)
					if terminated.Load() == 0 {
						l.violated("worker %d was refused before the end", w.number)
					}
				default:
					ends.Add(1)
				}
				return
			}
		})
	}
	<-enough // the load is at its height
	terminated.Store(1)
	p.signal(syscall.SIGTERM)
	if len(args) > 0 {
		notReady(t, p)
	}
	code := p.wait()
	done.Wait()
	t.Logf("acknowledged %d, refused with 503 %d, without an answer %d", l.mu.acks, refusals.Load(), ends.Load())
	assert.Zero(t, code, "the end: got exit code")
	assert.True(t, p.log.has(`"drained":true`), "the log does not say that all accepted requests were answered")
	// NB: whether somebody asked meanwhile and was refused is up to the machine.
	if took := regexp.MustCompile(`"tookMs":([\d.]+)[^\n]*"message":"stopped listening"`).FindStringSubmatch(p.log.all()); took == nil {
		t.Error("the log does not say how long the end took")
	} else if ms, err := strconv.ParseFloat(took[1], 64); err != nil || len(args) > 0 && ms < 200 {
		t.Errorf("the end took %s ms, want at least the delay", took[1])
	}
	wantOnlyAcknowledged(t, start(t, p.home), l, token)
}

// TestDrainEndsStreams holds gateway/INTERFACE.md, "How a stream ends": the program
// does not wait for those who watch, and ends their streams in order. Here it is ended as
// a terminal does, by Ctrl-C and when it is closed.
func TestDrainEndsStreams(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) { drainStreams(t, s) })
	}
}

func drainStreams(t *testing.T, s syscall.Signal) {
	if signal.Ignored(s) {
		t.Skip("the program inherits that it is ignored")
	}
	p := start(t, newHome(t, map[string]string{"workflows/load.yaml": loadFlow}), "--drain-max", "2m")
	conn, err := p.Dial()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	watch := request{Method: "GET", Path: wiretest.Root + "/watch/load", Headers: p.as(p.home.token("ann")).Credential}
	_, err = conn.Write(watch.Text("x"))
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	_, err = r.Peek(1)
	require.NoError(t, err)
	p.signal(s)
	a, err := wiretest.ReadAnswer(r, watch.Method)
	assert.True(t, err == nil && a.Status == 200 && strings.HasPrefix(a.Body, "retry: "), "got %d %q and %v, want a stream that ends in order", a.Status, a.Body, err)
	if code := p.wait(); code != 0 || !p.log.has(`"drained":true`) {
		t.Errorf("exit code: got %d, want 0, and all requests answered: %s", code, p.log.all())
	}
}

// notReady demands that a draining program says so.
func notReady(t *testing.T, p *program) {
	t.Helper()
	p.awaitOrEnd("/readyz to turn", func() bool {
		a, err := p.Try(request{Method: "GET", Path: "/readyz"})
		if err == nil && a.Status == 503 {
			assert.Empty(t, a.FaultReason(503, "Unavailable"))
		}
		return errors.Is(err, syscall.ECONNREFUSED) || a.Status == 503
	})
	a, err := p.Try(request{Method: "GET", Path: "/livez"})
	assert.False(t, err == nil && a.Status != 200, "/livez while draining: got %d, want 200", a.Status)
}

// wantOnlyAcknowledged demands that what was acknowledged is there, and nothing
// else: a request that was refused or got no answer was never accepted.
func wantOnlyAcknowledged(t *testing.T, p *program, l *ledger, token string) {
	t.Helper()
	var got killed
	instances, keys := l.all(newWorkers(1, l, token, 1)[0].random, 200)
	u := p.as(token)
	got.check(t, u, l, instances, keys)
	got.checkList(t, u, l)
	assert.LessOrEqual(t, len(got.found.lost)+len(got.found.doubled)+len(got.found.broken), 0, "after the restart:\n%s", &got.found)
	var all strings.Builder
	for _, id := range instances {
		all.WriteString(u.Load(t, "load", id).Body)
	}
	for _, pr := range l.mu.promises {
		assert.False(t, !pr.acked && pr.instance != "" && strings.Contains(all.String(), `"e.`+pr.key+`"`), "event %s was applied, but not answered", pr.key)
	}
	l.report(t)
	p.stop()
}
