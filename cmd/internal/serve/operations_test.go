package serve

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/metric"
	"troupe/gateway/admin"
	"troupe/gateway/wiretest"
	"troupe/statemachine/document"
)

// operationsOf returns the address of the listener for metrics; "" without one.
func operationsOf(s *service) string {
	for _, p := range s.started.parts {
		if o, ok := p.(*admin.Operations); ok {
			return o.Addr().String()
		}
	}
	return ""
}

func ask(t *testing.T, method, url string, accept ...string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	require.NoError(t, err)
	r.Header["Accept"] = accept
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return a.StatusCode, string(text)
}

type scraped map[string]*dto.MetricFamily

func scrape(t *testing.T, s *service) scraped {
	t.Helper()
	status, text := ask(t, "GET", "http://"+operationsOf(s)+"/metrics")
	require.Equal(t, 200, status, text)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	return families
}

// value is the sum of the samples of a metric that have these labels, name after name.
func (f scraped) value(name string, labels ...string) (sum float64) {
	for _, m := range f[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		same := true
		for i := 0; i < len(labels); i += 2 {
			same = same && has[labels[i]] == labels[i+1]
		}
		if same {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// TestMetrics holds what a server and a node of a cluster answer to the table, of which cmd/troupe/HOME.md, "Metrics", has the
// rows, and the dashboard and the alerts of deploy to what they answer.
func TestMetrics(t *testing.T) {
	t.Setenv("TROUPE_ADMIN", "127.0.0.1:0")
	exports := fmt.Sprintf(`[{"name": "files", "to": %q}]`, t.TempDir()) // so that there are metrics of one
	t.Setenv("TROUPE_EXPORTS", exports)
	alone := newService(homeWithJob(t))
	require.NoError(t, alone.config.Flags.Set("exports", exports))
	if err := alone.start(t.Context()); err != nil {
		t.Fatal(err, alone.stop())
	}
	nodeHome := homeWithJob(t)
	says(t, "is the first of a new cluster", "cluster", "init", "--home", nodeHome, "--cluster-listen", clitest.NodeAddress())
	node := nodeOn(t, nodeHome)
	t.Run("standalone", func(t *testing.T) {
		countsWork(t, alone)
		before := scrape(t, alone).value("troupe_tasks_open")
		dir := alone.config.Home
		require.NoError(t, alone.stop())
		again := newService(dir)
		require.NoError(t, again.config.Flags.Set("exports", exports))
		require.NoError(t, again.start(t.Context()))
		defer func() { assert.NoError(t, again.stop()) }()
		after := scrape(t, again)
		assert.True(t, before == 1 && after.value("troupe_tasks_open") == 1, "tasks open: %v before a restart and %v after it, want 1", before, after.value("troupe_tasks_open"))
		assert.Zero(t, after.value("troupe_events_total"), "events since the start")
	})
	t.Run("node", func(t *testing.T) {
		await(t, func() bool { return node.node.Ready() == nil && len(clusterOf(t, nodeHome).Short) == 0 })
		families := countsWork(t, node)
		assert.Equal(t, families.value("troupe_raft_shards_held"), families.value("troupe_raft_shards_led"), "shards of a node alone")
		_, text := ask(t, "GET", "http://"+operationsOf(node)+"/metrics", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
		decoder, native := expfmt.NewDecoder(strings.NewReader(text), expfmt.NewFormat(expfmt.TypeProtoDelim)), 0
		for f := new(dto.MetricFamily); decoder.Decode(f) == nil; f = new(dto.MetricFamily) {
			for _, m := range f.GetMetric() {
				native += len(m.GetHistogram().GetPositiveSpan())
			}
		}
		assert.NotZero(t, native, "buckets of native histograms")
		for _, file := range []string{"grafana.json", "alerts.yaml"} {
			wantsNames(t, families, filepath.Join(clitest.Tree(), "deploy", file))
		}
	})
}

// homeWithJob is the example with a workflow that asks for a job at once: a metric of jobs has samples for each type.
func homeWithJob(t *testing.T) string {
	const workflow = "id: sweep\nversion: 1\njobs: {sweep: }\nstateMachines: {main: {initial: busy, states: {busy: {invoke: {job: sweep, onDone: done}}, done: {type: final}}}}\n"
	home := clitest.ExampleHome(t)
	require.NoError(t, os.WriteFile(filepath.Join(home, "workflows", "sweep.yaml"), []byte(workflow), 0o600))
	return home
}

// countsWork compares what is scraped before and after some requests, and all of it with the table.
func countsWork(t *testing.T, s *service) scraped {
	base := "http://" + s.gateway.Addr().String()
	token, _, err := s.identities.Create(t.Context(), identity.Token, identity.CreateCredential{User: "john.doe"})
	require.NoError(t, err)
	ask(t, "GET", base+"/readyz")
	john := wiretest.User{
		Client:     &wiretest.Client{Address: func() (string, error) { return s.gateway.Addr().String(), nil }},
		Credential: []string{"Authorization: svc.token " + token},
	}
	john.Create(t, "sweep", "").Record(t)
	var before scraped
	await(t, func() bool {
		before = scrape(t, s)
		return before.value("troupe_jobs_waiting", "type", "sweep") == 1
	})
	ask(t, "BREW", base+"/nothing")
	ask(t, "GET", base+"/nothing/else")
	const event = "/workflow/api/v1/event"
	id := john.Create(t, "leave-request", "").Record(t).ID
	john.Event(t, "leave-request", id, "nonsense", "").WantStatus(t, 400)
	john.Event(t, "leave-request", id, "submit", `{"days":10}`).WantStatus(t, 200)
	var after scraped
	more := func(name string, labels ...string) float64 {
		return after.value(name, labels...) - before.value(name, labels...)
	}
	await(t, func() bool { // NB: what waits is counted anew within a bound on time, so on a busy machine not at each scrape
		after = scrape(t, s)
		return more("troupe_tasks_open") == 1
	})
	for _, of := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"troupe_http_requests_total", []string{"route", event, "method", "POST", "status", "200"}, 1},
		{"troupe_http_requests_total", []string{"route", event, "method", "POST", "status", "400"}, 1},
		{"troupe_http_requests_total", []string{"route", "outside", "method", "other", "status", "404"}, 1},
		{"troupe_http_requests_total", []string{"route", "outside", "method", "GET", "status", "404"}, 1},
		{"troupe_http_request_duration_seconds", []string{"route", event, "method", "POST"}, 2},
		{"troupe_creates_total", nil, 1},
		{"troupe_events_total", nil, 1},
		{"troupe_tasks_open", nil, 1},
		{"troupe_instances_awake", nil, 1},
		{"troupe_incidents_open", nil, 0},
		{"troupe_outbox_pending", nil, 0},
	} {
		assert.InDelta(t, of.want, more(of.name, of.labels...), 0, "%s %v", of.name, of.labels)
	}
	assert.Positive(t, more("troupe_commits_total"))
	assert.Positive(t, more("troupe_commit_sync_seconds"))
	wantsTable(t, s, after)
	return after
}

func wantsTable(t *testing.T, s *service, families scraped) {
	ours := slices.DeleteFunc(slices.Collect(maps.Keys(families)), func(name string) bool { return !strings.HasPrefix(name, "troupe_") })
	for _, d := range metric.Descriptions() {
		if s.node == nil && ofCluster.MatchString(d.Name) {
			continue
		}
		f := families[d.Name]
		ours = slices.DeleteFunc(ours, func(name string) bool { return name == d.Name })
		assert.True(t, strings.EqualFold(d.Type, f.GetType().String()) && d.Help == f.GetHelp(), "%s: got %v %q, the table has %v", d.Name, f.GetType(), f.GetHelp(), d)
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			assert.ElementsMatch(t, d.Labels, labels, d.Name)
		}
	}
	assert.Empty(t, ours, "metrics that the table lacks")
}

var (
	ofCluster  = regexp.MustCompile("^troupe_(cluster|raft)_")
	metricName = regexp.MustCompile(`\b(?:troupe|go|process)_[a-z_]+\b`)
	ofLabel    = regexp.MustCompile(`[({,] ?([a-z]+) ?(?:=~?|!~|!=)|by \(([a-z, ]+)\)`)
)

// wantsNames holds the queries of a file to the metrics and labels of a server. NB: Prometheus' parser of queries is a large
// module; names and labels are what changes.
func wantsNames(t *testing.T, families scraped, file string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	tree, err := document.Parse(filepath.Base(file), text) // NB: JSON is YAML
	require.NoError(t, err)
	queries := exprsOf(tree)
	require.Greater(t, len(queries), 10, file)
	known := []string{"instance", "job", "le"}
	for _, d := range metric.Descriptions() {
		known = append(known, d.Labels...)
	}
	for _, query := range queries {
		names := metricName.FindAllString(query, -1)
		assert.NotEmpty(t, names, "%s: %s", file, query)
		for _, name := range names {
			f := families[name]
			if f == nil { // the samples of a histogram
				f = families[regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(name, "")]
				assert.Equal(t, dto.MetricType_HISTOGRAM, f.GetType(), "%s: %s in %s", file, name, query)
			}
			assert.NotNil(t, f, "%s: %s in %s", file, name, query)
		}
		for _, m := range ofLabel.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(m[1]+m[2], ",") {
				assert.Contains(t, known, strings.TrimSpace(label), "%s: a label of %s", file, query)
			}
		}
		assert.True(t, strings.Count(query, "(") == strings.Count(query, ")") && strings.Count(query, "{") == strings.Count(query, "}"), "%s: brackets of %s", file, query)
	}
}

// exprsOf returns the values of all members with the name expr. An alert has a name, a summary and a runbook beside it.
func exprsOf(n *document.Node) (all []string) {
	has := map[string]*document.Node{}
	for _, f := range n.Fields {
		has[f.Key.Text] = f.Value
		if f.Key.Text == "expr" {
			all = append(all, f.Value.Text)
		}
		all = append(all, exprsOf(f.Value)...)
	}
	for _, item := range n.Items {
		all = append(all, exprsOf(item)...)
	}
	return all
}

// TestTheDefaultAddressOfMetrics holds cmd/troupe/HOME.md, "Health, metrics and logs": a server whose default address is taken runs
// without metrics, and one that was told an address has profiles there or does not start.
func TestTheDefaultAddressOfMetrics(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	for _, c := range []struct {
		chosen, address  string // chosen is the setting's text, if there is one; address that of the listener in place of the default
		fails            string
		metrics, profile int    // the statuses
		log              string // has this
	}{
		{address: "127.0.0.1:0", metrics: 200, profile: 404, log: `"metrics"`},
		{address: taken.Addr().String(), log: "metrics are off: their default address cannot be used; choose another one with --admin"},
		{chosen: "127.0.0.1:0", address: "127.0.0.1:0", metrics: 200, profile: 200, log: "metrics and profiles"},
		{chosen: taken.Addr().String(), address: taken.Addr().String(), fails: "choose another address with --admin"},
		{chosen: " ", log: "listening"},
	} {
		t.Setenv("TROUPE_ADMIN", strings.TrimSpace(c.chosen))
		if c.chosen == "" {
			require.NoError(t, os.Unsetenv("TROUPE_ADMIN"))
		}
		s, log := newService(bareHome(t)), &strings.Builder{}
		require.NoError(t, s.config.Load())
		s.config.Admin = c.address
		s.log = zerolog.New(zerolog.SyncWriter(log))
		err := s.start(t.Context())
		if c.fails != "" {
			assert.ErrorContains(t, err, c.fails)
		} else if assert.NoError(t, err) && c.metrics != 0 {
			status, _ := ask(t, "GET", "http://"+operationsOf(s)+"/metrics")
			assert.Equal(t, c.metrics, status, "/metrics, %+v", c)
			status, _ = ask(t, "GET", "http://"+operationsOf(s)+"/debug/pprof/symbol")
			assert.Equal(t, c.profile, status, "profiles, %+v", c)
		} else {
			assert.Empty(t, operationsOf(s))
		}
		require.NoError(t, s.stop())
		assert.Contains(t, log.String(), c.log)
	}
}
