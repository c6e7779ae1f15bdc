package gateway

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"

	"troupe/actors/home"
	"troupe/actors/job"
	"troupe/gateway/internal/instances"
	"troupe/gateway/internal/jobs"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/session"
	"troupe/gateway/login"
	"troupe/gateway/toll"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// StartService starts a server with services, for the tests of the interface in
// package gateway_test: its exchanges are held against openapi.yaml, and the end of
// the test stops it. log returns what it logged.
func StartService(t testing.TB, o Options, services Services) (s *Server, log func() string) {
	t.Helper()
	started := startClosed(t, o)
	started.Open(services)
	return started.Server, started.log.String
}

// InputLimits are limits of gateway/INTERFACE.md, "Limits of inputs", by the first cell of their rows.
func InputLimits() map[string]int64 {
	var o Options
	o.EnsureDefaults()
	return map[string]int64{
		"line and headers of a request, so that of a path, a query and all cookies together": int64(o.HeaderBytesMax),
		"token, session id":                      parse.SecretCharsMax,
		"`next` of a sign-in":                    login.DestinationBytesMax,
		"`Host` of a sign-in through a provider": session.HostBytesMax,
		"`Accept-Language`":                      parse.LanguageBytesMax,
		"`Accept-Language`, languages in it":     parse.LanguagesMax,
		"bodies of one user beyond the first 16 KiB of each, and answers of 256 KiB and more, per second and processor": kernel.Half(toll.ProcessorBytes),
		"objects and arrays inside each other, in any body":                                                             data.MaxDepth,
		"`svcPublic` and `svcPrivate` of an instance together":                                                          statemachine.MaxDataBytes,
		"batch, bytes":            instances.BatchBytesMax,
		"batch, items":            instances.BatchItemsMax,
		"batch, bytes of an item": o.BodyBytesMax,
		"all batches, bytes beyond 1 MiB of each; half for one user":        instances.BatchBodiesMax,
		"results of [jobs](#results-of-jobs), bytes; they count as batches": instances.BatchBytesMax,
		"jobs of one request":                 jobs.ItemsMax,
		"types of one activation":             jobs.TypesMax,
		"`wait` of an activation, in seconds": int64(job.WaitMax.Seconds()),
		"name of a worker":                    jobs.WorkerBytesMax,
		"message of a failed attempt":         jobs.MessageBytesMax,
		"published home, bytes":               home.MaxPackedBytes,
		"published definition; its [content](../statemachine/DEFINITION.md#limits)":               home.MaxFileBytes,
		"published home, bytes of an entry; its [content](../cmd/troupe/HOME.md#limits-of-files)": home.MaxFileBytes,
		"requests in flight (`requestsMax`), half for one user":                                   o.InFlightMax,
		"connections (`connectionsMax`)":                                                          int64(o.ConnectionsMax),
		"streams of events (`watchersMax`)":                                                       o.WatchersMax,
		"streams of events of one user (`watchersPerUserMax`)":                                    o.WatchersPerUserMax,
		"activations that wait, ten times `watchersMax`":                                          kernel.WaitsPerWatcher * o.WatchersMax,
		"activations of one user that wait, ten times `watchersPerUserMax`":                       kernel.WaitsPerWatcher * o.WatchersPerUserMax,
	}
}

func TestMain(m *testing.M) {
	// A tenth of the time of these tests went to the collector: they make much garbage and keep little.
	debug.SetGCPercent(400)
	goleak.VerifyTestMain(m)
}
