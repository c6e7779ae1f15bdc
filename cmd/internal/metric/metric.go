// Package metric shows what the parts of a server count as Prometheus has it: each part counts in fields of its own and
// knows nothing of Prometheus, and a scrape reads them all. Only how long requests take is recorded as they are answered.
// The table is families; cmd/troupe/HOME.md, "Metrics", has its rows.
package metric

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"troupe/actors/cluster"
	"troupe/actors/export"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/job"
	"troupe/actors/pending"
	"troupe/actors/repository"
	"troupe/actors/template"
	"troupe/actors/workflow"
	"troupe/gateway"
	"troupe/persistence"
)

// Reload is what the server has taken over of one set of text files.
type Reload struct {
	Used, Refused uint64 // readings that ended with the files in use and durable, and the others
	Pending       bool   // the newest files are not in use, or not known to be durable
	Errors        int64  // of those files
}

// Readings are the counters of all parts at one scrape.
type Readings struct {
	Version      string
	Gateway      gateway.Metrics
	Workflow     workflow.Metrics
	Waiting      *pending.Counts // nil: it could not be read, and has no samples
	Jobs         job.Metrics
	JobTypes     []job.TypeCount // of the shards that are led here
	Now          time.Time       // which ages are measured from
	Portal       formportal.Metrics
	Template     template.Metrics
	Repository   repository.Metrics
	Identity     identity.Metrics
	Store        persistence.Metrics
	BacklogBytes int64             // that wait for the store
	Reloads      map[string]Reload // by the name of the set
	Exports      []export.Metrics
	Node         *cluster.Metrics // nil on a standalone server
}

// Latency records how long requests take, from before there is anything to scrape.
type Latency struct{ of *prometheus.HistogramVec }

// latencyBuckets are those of classic histograms; the native one of a scrape by protobuf is finer.
var latencyBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// NewLatency returns one that has recorded nothing.
func NewLatency() *Latency {
	return &Latency{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: latencyName, Help: latencyHelp, Buckets: latencyBuckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
	}, latencyLabels)}
}

// Of is gateway.Options.Latency.
func (l *Latency) Of(route, method string) gateway.Observer {
	return l.of.WithLabelValues(route, method)
}

// Handler answers scrapes: with what read returns, the latencies, and what Go and the
// system say of the process.
func Handler(read func() *Readings, l *Latency, log zerolog.Logger) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collector(read), l.of, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: errorLog{log}, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax, EnableOpenMetrics: true,
	})
}

// scrapesMax bounds the scrapes at a time: more are answered with 503.
const scrapesMax = 4

type errorLog struct{ zerolog.Logger }

func (l errorLog) Println(v ...any) { l.Warn().Interface("error", v).Msg("metrics cannot be read") }
