package serve

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"troupe/actors/identity"
	"troupe/actors/logtest"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/wiretest"
)

// collected is a collector of traces: it has the spans by their ids.
type collected struct{ spans chan *v1.Span }

func (c *collected) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var all v1.TracesData // what an ExportTraceServiceRequest is on the wire
	if r.URL.Path != "/v1/traces" || r.Header.Get("X-Key") != "a b" || proto.Unmarshal(body, &all) != nil {
		return
	}
	for _, of := range all.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans <- span
			}
		}
	}
}

// TestATraceGoesThroughEverything holds cmd/troupe/HOME.md, "Traces": a create and an event whose callers name one trace are in it, and so
// is all that they cause: commits, the webhook, its callback, the child and what that tells, and the timer. A restart in between does no
// harm. So are what people do with forms and tasks, and a schedule that is run by hand.
func TestATraceGoesThroughEverything(t *testing.T) {
	collector := &collected{make(chan *v1.Span, 1000)}
	to := httptest.NewServer(collector)
	defer to.Close()
	hooks, failing := make(chan http.Header, 10), make(chan struct{}, 1)
	failing <- struct{}{}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-failing:
			w.WriteHeader(http.StatusInternalServerError)
		default:
		}
		hooks <- r.Header
	}))
	defer hook.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10") // milliseconds
	dir := t.TempDir()
	for name, text := range map[string]string{
		"identity.yaml": "roles: [{id: boss, privileges: [mod-form-portal, mod-form, mod-workflows, mod-jobs]}]\nusers: [{id: ann, roles: [boss]}]\n",
		"troupe.yaml":   "webhooks: {allow: [127.0.0.0/8], endpoints: {chain: {far: {url: '" + hook.URL + "'}}}}\n",
		"workflows/chain.yaml": "id: chain\njobs: {dig: {retry: {limit: 1}}}\nwebhooks: {far: {onDone: heard, retry: {limit: 9, delay: PT1S, maxDelay: PT1S}}}\nstateMachines: {main: {initial: open, states: {open: {on: {go: {target: sent, " +
			"actions: [{webhook: {to: far, body: {}}}]}}}, sent: {on: {heard: asking}}, asking: {invoke: {workflow: link, onDone: resting}}, resting: {after: {PT0.1S: working}}, working: {invoke: {job: dig, onDone: closed}}, closed: {type: final}}}}\n",
		"workflows/desk.yaml": "id: desk\nschedules: {monthly: {cron: '0 7 1 * *', create: {}}}\n" +
			"stateMachines: {main: {initial: open, states: {open: {on: {submit: asked}}, asked: {task: {form: paper}, on: {submit: closed}}, closed: {type: final}}}}\n",
		"forms/paper.yaml":    "{id: paper, access: {roles: [boss]}, workflows: [desk], submit: submit, schema: {type: object}}\n",
		"workflows/link.yaml": "id: link\nstateMachines: {main: {initial: done, states: {done: {type: final}}}}\n",
	} {
		clitest.PutFile(t, dir, name, text)
	}
	start := func() (*service, *logtest.Log) {
		s, log := newService(dir), &logtest.Log{}
		require.NoError(t, s.config.Load())
		s.log = zerolog.New(log).Level(zerolog.DebugLevel)
		if err := s.start(t.Context()); err != nil {
			t.Fatal(err, s.stop())
		}
		return s, log
	}
	const id, above = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	const parent = "Traceparent: 00-" + id + "-" + above + "-01"
	s, log := start()
	token, _, err := s.identities.Create(t.Context(), identity.Token, identity.CreateCredential{User: "ann"})
	require.NoError(t, err)
	ann := wiretest.User{
		Client:     &wiretest.Client{Address: func() (string, error) { return s.gateway.Addr().String(), nil }},
		Credential: []string{"Authorization: svc.token " + token},
	}
	instance := ann.Create(t, "chain", "", parent).Record(t).ID
	ann.Event(t, "chain", instance, "go", "", parent).WantStatus(t, 200)
	session, _, err := s.identities.Create(t.Context(), identity.Session, identity.CreateCredential{User: "ann"})
	require.NoError(t, err)
	desk := wiretest.User{Client: ann.Client, Credential: []string{"Cookie: session=" + session}}
	ask := func(method, path, body string) string {
		r := desk.Posting(path, body, parent)
		r.Method = method
		answer := desk.Send(t, r)
		answer.WantStatus(t, 200)
		return answer.Body
	}
	paper := ask("POST", "/form-portal/forms/create", `{"formId":"paper","workflowId":"desk"}`)
	ask("PUT", "/form-runtime/api/v1/draft/desk/"+paper, `{"data":{}}`)
	ask("POST", "/form-runtime/api/v1/submit", `{"workflowId":"desk","instanceId":"`+paper+`","data":{}}`)
	tasks := wiretest.Decode[struct{ Tasks []struct{ TaskID string } }](t, ask("GET", "/workflow/api/v1/tasks", ""))
	task := "/form-runtime/api/v1/task/" + tasks.Tasks[0].TaskID
	ask("PUT", task+"/draft", `{"data":{}}`)
	ask("POST", task+"/submit", `{"data":{}}`)
	ask("POST", "/workflow/api/v1/schedules/desk/monthly", `{"action":"run"}`)
	<-hooks // it fails, and is tried again
	require.NoError(t, s.stop())
	assert.Contains(t, log.String(), `"trace":"`+id+`"`, "lines of the requests")

	s, _ = start()
	header := <-hooks
	assert.True(t, strings.HasPrefix(header.Get("Traceparent"), "00-"+id+"-") && strings.HasSuffix(header.Get("Traceparent"), "-01"), "the webhook got %q", header.Get("Traceparent"))
	type given struct {
		Jobs []struct{ JobID, Lease, Traceparent string }
	}
	take := func() (jobID, lease, worksIn string) {
		got := wiretest.Decode[given](t, ask("POST", "/workflow/api/v1/jobs/activate", `{"types":["dig"],"worker":"w1","wait":"PT60S"}`)).Jobs
		require.Len(t, got, 1)
		return got[0].JobID, got[0].Lease, got[0].Traceparent
	}
	jobID, lease, _ := take()
	ask("POST", "/workflow/api/v1/jobs/fail", `{"jobs":[{"jobId":"`+jobID+`","lease":"`+lease+`","retryIn":"PT0S"}]}`)
	jobID, lease, worksIn := take()
	ask("POST", "/workflow/api/v1/jobs/complete", `{"jobs":[{"jobId":"`+jobID+`","lease":"`+lease+`"}]}`)
	wanted := []string{
		"POST /workflow/api/v1/jobs/activate", "POST /workflow/api/v1/jobs/fail", "POST /workflow/api/v1/jobs/complete", "wait for a worker", "job dig",
		"POST /workflow/api/v1/create", "create", "POST /workflow/api/v1/event", "event", "deliver webhook", "callback", "deliver invoke", "message", "commit", "timer",
		"GET /workflow/api/v1/tasks", "POST /form-portal/forms/create", "formportal create", "PUT /form-runtime/api/v1/draft/:workflowId/:instanceId", "formportal draft", "draft",
		"POST /form-runtime/api/v1/submit", "formportal submit", "submit", "PUT /form-runtime/api/v1/task/:taskId/draft", "formportal task draft", "task draft",
		"POST /form-runtime/api/v1/task/:taskId/submit", "formportal task submit", "task submit", "POST /workflow/api/v1/schedules/:workflowId/:name", "schedule",
	}
	spans, names := map[string]*v1.Span{}, map[string]int{}
	for notice := false; len(names) < len(wanted) || !notice; {
		span := <-collector.spans
		assert.Equal(t, id, hex.EncodeToString(span.GetTraceId()), span.GetName())
		spans[string(span.GetSpanId())] = span
		names[span.GetName()]++
		notice = names["message"] == 2 // the start of the child, and its end
	}
	require.NoError(t, s.stop())
	close(collector.spans)
	for span := range collector.spans {
		spans[string(span.GetSpanId())] = span
		names[span.GetName()]++
	}
	for name := range names {
		assert.Contains(t, wanted, name)
	}
	assert.GreaterOrEqual(t, names["deliver webhook"], 2, "attempts")
	sent := spans[string(unhex(t, strings.Split(header.Get("Traceparent"), "-")[2]))]
	assert.Equal(t, "deliver webhook", sent.GetName(), "who is above whoever got the webhook")
	assert.Equal(t, []int{2, 2}, []int{names["job dig"], names["wait for a worker"]})
	of := spans[string(unhex(t, strings.Split(worksIn, "-")[2]))]
	said := map[string]string{}
	for _, a := range of.GetAttributes() {
		said[a.GetKey()] = a.GetValue().GetStringValue()
	}
	assert.Equal(t, map[string]string{
		"troupe.workflow": "chain", "troupe.instance": instance, "troupe.job": jobID, "troupe.job_type": "dig", "troupe.attempt": "2", "troupe.worker": "w1",
	}, said, "of %s, where the worker works", of.GetName())
	ends := 0
	for _, span := range spans {
		if string(span.GetParentSpanId()) == string(of.GetSpanId()) {
			ends++
			assert.Equal(t, "callback", span.GetName(), "below the attempt")
		}
	}
	assert.Equal(t, 1, ends)
	for _, span := range spans {
		path := []string{span.GetName()}
		for hex.EncodeToString(span.GetParentSpanId()) != above {
			span = spans[string(span.GetParentSpanId())]
			require.NotNil(t, span, "%v comes from nowhere", path)
			path = append(path, span.GetName())
		}
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	return b
}

// TestACollectorThatCannotBe ends a start with a line that says which setting is wrong.
func TestACollectorThatCannotBe(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318", "OTEL_EXPORTER_OTLP_ENDPOINT must be the address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "grpc://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be the address"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "key", "OTEL_EXPORTER_OTLP_HEADERS must be pairs"},
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
		t.Setenv(c.name, c.value)
		s := newService(bareHome(t))
		assert.ErrorContains(t, s.start(t.Context()), c.want)
		require.NoError(t, s.stop())
		t.Setenv(c.name, "")
	}
}
