package gateway

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"troupe/gateway/api"
)

func (f *fakeWorkflows) vitals() api.Vitals {
	return api.Vitals{Store: api.StoreVitals{DiskBytes: 4096, FreeBytes: -1, Committed: 7}, Work: api.WorkVitals{Awake: 2, Events: 5}}
}

// TestHealthOfTheService holds gateway/INTERFACE.md, "Service health".
func TestHealthOfTheService(t *testing.T) {
	s := startServer(t, Options{Build: Build{Version: "v1", Commit: "c", Go: "go"}}, nil)
	ask := func(headers ...string) (h api.Health, status int) {
		a := s.do(t, request{Method: "GET", Path: adminPath + "/health", Headers: headers})
		if a.Status == 200 {
			if err := json.Unmarshal([]byte(a.Body), &h); err != nil {
				t.Fatal(err)
			}
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
		if _, status := ask(headers...); status != who.want {
			t.Errorf("%s: got %d, want %d", who.name, status, who.want)
		}
	}

	first, _ := ask(withModToken)
	second, _ := ask(withModToken)
	if !first.Ready || first.Build.Version != "v1" || first.Cluster != nil || len(first.Parts) != 1 || first.Parts[0].Name != "gateway" {
		t.Errorf("got %+v", first)
	}
	if first.Started != second.Started || second.Requests.Answered != first.Requests.Answered+1 || second.Requests.InFlight != 1 {
		t.Errorf("counters do not go on: %+v, then %+v", first.Requests, second.Requests)
	}
	if first.Vitals == nil || first.Store.DiskBytes != 4096 || first.Store.FreeBytes != -1 || first.Work.Events != 5 {
		t.Errorf("got the vitals %+v", first.Vitals)
	}
}

// TestAPartThatIsNotReady: only what is not optional keeps the service from being ready.
func TestAPartThatIsNotReady(t *testing.T) {
	s := startServer(t, Options{}, nil)
	services := *s.services.Load()
	for _, optional := range []bool{true, false} {
		services.Parts = []Part{{Name: "files", Optional: optional, Ready: func() error { return errors.New("not indexed") }}}
		changed := services
		s.services.Store(&changed)
		a := s.do(t, request{Method: "GET", Path: adminPath + "/health", Headers: []string{withModToken}})
		var h api.Health
		if err := json.Unmarshal([]byte(a.Body), &h); err != nil || h.Ready != optional || h.Parts[1].Reason != "not indexed" || h.Parts[1].Optional != optional {
			t.Errorf("optional %v: got %s", optional, a.Body)
		}
	}
}

// TestVitalsAreReadSeldom holds gateway/INTERFACE.md, "Service health".
func TestVitalsAreReadSeldom(t *testing.T) {
	var v vitalsReading
	asked := 0
	ask := func() api.Vitals { asked++; return api.Vitals{Work: api.WorkVitals{Events: int64(asked)}} }
	if v.read(nil) != nil || v.read(ask).Work.Events != 1 {
		t.Error("the first answer is not what was asked for")
	}
	v.at = time.Now().Add(time.Hour) // not old, however slow the machine is
	if v.read(ask).Work.Events != 1 || asked != 1 {
		t.Error("it was asked again at once")
	}
	v.at = time.Now().Add(-vitalsEvery)
	if v.read(ask).Work.Events != 2 {
		t.Error("it was not asked again")
	}
}
