package load

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is a server that says of every instance what the generator expects, unless event is set.
type fake struct {
	t       *testing.T
	server  *httptest.Server
	created atomic.Int64
	events  atomic.Int64
	create  func(w http.ResponseWriter) (answered bool) // nil: it goes well
	event   func(w http.ResponseWriter, n int64, id, node string)
	whole   func(w http.ResponseWriter, n int64) (answered bool) // to the n-th batch; nil: its events are
	batch   func(n int64, i int, id, node string) string         // the result of its i-th event; empty: it went well
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, event: func(w http.ResponseWriter, _ int64, id, node string) { writeInstance(w, id, node) }}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

// secure is the same over TLS.
func (f *fake) secure() *httptest.Server {
	s := httptest.NewUnstartedServer(f)
	s.StartTLS()
	f.t.Cleanup(s.Close)
	s.Client().Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com"
	return s
}

func writeInstance(w http.ResponseWriter, id, node string) {
	fmt.Fprintf(w, `{"workflowId":"leave-request","instanceId":"%s","state":{"states":[{"nodeId":"%s"}]}}`, id, node)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/create") {
		if f.create != nil && f.create(w) {
			return
		}
		writeInstance(w, fmt.Sprint("i", f.created.Add(1)), "draft")
		return
	}
	body := make([]byte, r.ContentLength)
	_, _ = io.ReadFull(r.Body, body)
	text := string(body)
	if strings.HasSuffix(r.URL.Path, "/events") {
		f.answerBatch(w, text)
		return
	}
	_, text, _ = strings.Cut(text, string(instanceKey))
	id, node := readEvent(text)
	f.event(w, f.events.Add(1), id, node)
}

// readEvent reads an event from the id of its instance on, and where it leads.
func readEvent(text string) (id, node string) {
	id, rest, _ := strings.Cut(text, `"`)
	if strings.Contains(rest, "submit") {
		return id, "review"
	}
	return id, "draft"
}

func (f *fake) answerBatch(w http.ResponseWriter, text string) {
	n := f.events.Add(1)
	if f.whole != nil && f.whole(w, n) {
		return
	}
	var results []string
	for i, item := range strings.Split(text, string(instanceKey))[1:] {
		id, node := readEvent(item)
		result := f.batch(n, i, id, node)
		if result == "" {
			result = fmt.Sprintf(`{"status":200,"workflowId":"leave-request","instanceId":"%s","sequence":%d}`, id, n)
		}
		results = append(results, result)
	}
	fmt.Fprintf(w, `{"results":[%s]}`, strings.Join(results, ","))
}

// worker is one that has prepared its instances.
func (f *fake) worker(instances int) *worker {
	f.t.Helper()
	o := Options{Addr: f.server.Listener.Addr().String()}
	o.EnsureDefaults()
	w := newWorker(&o, 0, new(atomic.Int64), new(gap))
	f.t.Cleanup(w.conn.close)
	require.NoError(f.t, w.prepare(f.t.Context(), instances))
	return w
}

func (f *fake) run(o Options) *Result {
	f.t.Helper()
	o.Addr = f.server.Listener.Addr().String()
	if o.WarmUp == 0 {
		o.WarmUp = -1
	}
	result, err := Run(f.t.Context(), o)
	require.NoError(f.t, err)
	return result
}

// inLongerWindows calls round with a window and, for as long as too little happened in it, with one that is four times
// as long: a machine that stood still for a while is no fault. A round holds what must be so however little happened,
// and returns whether it was enough.
func inLongerWindows(t *testing.T, window time.Duration, round func(window time.Duration) (enough bool)) {
	t.Helper()
	for range 6 {
		if round(window) || t.Failed() {
			return
		}
		window *= 4
	}
	t.Errorf("too little happened even in %v", window/4)
}
