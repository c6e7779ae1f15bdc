package gateway

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
)

func (f *fakeWorkflows) vitals() api.Vitals {
	return api.Vitals{Store: api.StoreVitals{DiskBytes: 4096, FreeBytes: -1, Committed: 7}, Work: api.WorkVitals{Awake: 2, Events: 5}}
}

// TestHealthOfTheService holds gateway/INTERFACE.md, "Service health".
func TestHealthOfTheService(t *testing.T) {
	s := startServer(t, Options{Build: Build{Version: "v1", Commit: "c", Go: "go"}}, nil)
	ask := func(headers ...string) (h api.Health, status int) {
		a := s.do(t, request{Method: "GET", Path: kernel.AdminPath + "/health", Headers: headers})
		if a.Status == 200 {
			require.NoError(t, json.Unmarshal([]byte(a.Body), &h))
		}
		return h, a.Status
	}
	for _, who := range []struct {
		name   string
		header string
		want   int
	}{
		{"nobody", "", 401},
		{"one without a privilege", withToken, 403},
		{"mod-workflows", withModToken, 200},
		{"mod-admin", "Cookie: session=" + sessionOf(privilegeAdmin), 200},
	} {
		headers := []string{who.header}
		if who.header == "" {
			headers = nil
		}
		_, status := ask(headers...)
		assert.Equal(t, who.want, status, who.name)
	}

	first, _ := ask(withModToken)
	second, _ := ask(withModToken)
	assert.True(t, first.Ready && first.Build.Version == "v1" && first.Cluster == nil && len(first.Parts) == 1 && first.Parts[0].Name == "gateway", "got %+v", first)
	assert.True(t, first.Started == second.Started && second.Requests.Answered == first.Requests.Answered+1 && second.Requests.InFlight == 1,
		"counters do not go on: %+v, then %+v", first.Requests, second.Requests)
	assert.True(t, first.Vitals != nil && first.Store.DiskBytes == 4096 && first.Store.FreeBytes == -1 && first.Work.Events == 5, "got the vitals %+v", first.Vitals)
}

// TestAPartThatIsNotReady: only what is not optional keeps the service from being ready.
func TestAPartThatIsNotReady(t *testing.T) {
	s := startServer(t, Options{}, nil)
	services := s.services
	for _, optional := range []bool{true, false} {
		services.Parts = []Part{{Name: "files", Optional: optional, Ready: func() error { return errors.New("not indexed") }}}
		s.Open(services)
		a := s.do(t, request{Method: "GET", Path: kernel.AdminPath + "/health", Headers: []string{withModToken}})
		var h api.Health
		assert.True(t, json.Unmarshal([]byte(a.Body), &h) == nil && h.Ready == optional && h.Parts[1].Reason == "not indexed" && h.Parts[1].Optional == optional,
			"optional %v: got %s", optional, a.Body)
	}
}
