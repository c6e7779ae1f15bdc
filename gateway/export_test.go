package gateway

import "testing"

// StartService starts a server with services, for the tests of the interface in
// package gateway_test: its exchanges are held against openapi.yaml, and the end of
// the test stops it. log returns what it logged.
func StartService(t testing.TB, o Options, services Services) (s *Server, log func() string) {
	t.Helper()
	started := startClosed(t, o)
	started.Open(services)
	return started.Server, started.log.String
}
