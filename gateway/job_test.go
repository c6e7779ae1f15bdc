package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/job"
	"troupe/gateway/internal/kernel"
)

// changing are credentials whose users change.
type changing struct {
	fakeCredentials
	now func() (*identity.Principal, error)
}

func (c changing) Authenticate(identity.Kind, string) (*identity.Principal, error) { return c.now() }

// TestActivationsThatWait holds gateway/INTERFACE.md, "Taking jobs": who waits has no slot, hears of the end of the server,
// and gets nothing that the rights of now do not give.
func TestActivationsThatWait(t *testing.T) {
	other := *ann
	other.Roles = nil
	for _, c := range []struct {
		what string
		// then is what ends the wait, before the jobs come.
		then   func(s *testServer)
		status int
		body   string
		back   bool // the jobs are given back
		now    func() (*identity.Principal, error)
	}{
		{what: "a job comes", status: 200, body: `{"jobs":[{"jobId":"j1"`},
		{what: "the server stops", then: func(s *testServer) { s.groups.jobs.StopWaiting() }, status: 200, body: `{"jobs":[]}`},
		{what: "other rights", status: 200, body: `{"jobs":[]}`, back: true, now: func() (*identity.Principal, error) { return &other, nil }},
		{what: "the credential ends", status: 401, body: "Unauthorized", back: true, now: func() (*identity.Principal, error) { return nil, failure.ErrUnauthorized }},
	} {
		t.Run(c.what, func(t *testing.T) {
			waiting, come := make(chan time.Duration), make(chan struct{})
			s := startServer(t, Options{}, &fakeWorkflows{activate: func(ctx context.Context, a *job.Activation) ([]job.Leased, error) {
				if a.Wait == 0 {
					return nil, nil
				}
				waiting <- a.Wait
				select {
				case <-come:
					return canned[[]job.Leased]("leased")[:1], nil
				case <-ctx.Done():
					return nil, failure.In("activate", "", ctx.Err())
				}
			}})
			now := func() (*identity.Principal, error) { return ann, nil }
			services := s.services
			services.Credentials = changing{now: func() (*identity.Principal, error) { return now() }}
			s.Open(services)

			answers := make(chan answer)
			go func() {
				answers <- s.do(t, request{Method: http.MethodPost, Path: "/workflow/api/v1/jobs/activate", Headers: []string{withToken, jsonLine}, Body: `{"types":["charge"],"wait":"PT20S"}`})
			}()
			assert.Equal(t, 20*time.Second, <-waiting)
			m := s.Metrics()
			assert.True(t, m.Watchers == 1 && m.InFlight == 0, "%d watchers and %d in flight, want 1 and 0", m.Watchers, m.InFlight)
			if c.now != nil {
				now = c.now
			}
			if c.then != nil {
				c.then(s)
			} else {
				close(come)
			}
			got := <-answers
			assert.Equal(t, c.status, got.Status)
			assert.Contains(t, got.Body, c.body)
			changed, _ := s.workflows.asked.(job.Request)
			assert.Equal(t, c.back, changed.Action == job.Fail, "%+v", changed)
			if c.back {
				require.Equal(t, []job.Item{{JobID: "j1", Lease: "l1", RetryIn: new(time.Duration), Later: true}}, changed.Items)
			}
			assert.Zero(t, s.Metrics().Watchers)
		})
	}
}

// TestWaitsMax: activations that wait have a bound of their own, ten times that of a user's streams, and take none of them.
func TestWaitsMax(t *testing.T) {
	waiting := make(chan struct{})
	f := newFeed()
	s := startServer(t, Options{WatchersPerUserMax: 1}, &fakeWorkflows{watch: f.watch, stop: func() {}, activate: func(ctx context.Context, a *job.Activation) ([]job.Leased, error) {
		if a.Wait == 0 {
			return nil, nil
		}
		waiting <- struct{}{}
		<-ctx.Done()
		return nil, failure.In("activate", "", ctx.Err())
	}})
	activate := request{Method: http.MethodPost, Path: "/workflow/api/v1/jobs/activate", Headers: []string{withToken, jsonLine}, Body: `{"types":["charge"],"wait":"PT20S"}`}
	answers := make(chan answer)
	for range 10 {
		go func() { answers <- s.do(t, activate) }()
		<-waiting
	}
	s.do(t, activate).WantFault(t, 503, "Busy")
	s.watch(t, withToken).expect(t, opening)
	s.groups.jobs.StopWaiting()
	for range 10 {
		assert.Equal(t, 200, (<-answers).Status)
	}
}

// TestAnActivationThatIsCut: of a wait that the actors end the caller hears.
func TestAnActivationThatIsCut(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{activate: func(_ context.Context, a *job.Activation) ([]job.Leased, error) {
		if a.Wait == 0 {
			return nil, nil
		}
		return nil, failure.ErrUnavailable
	}})
	got := s.do(t, request{Method: http.MethodPost, Path: "/workflow/api/v1/jobs/activate", Headers: []string{withToken, jsonLine}, Body: `{"types":["charge"],"wait":"PT20S"}`})
	assert.Equal(t, 503, got.Status)
}

// TestAnActivationSaysWhyThereAreNone of a restored store.
func TestAnActivationSaysWhyThereAreNone(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{paused: "jobs are paused"})
	got := s.do(t, request{Method: http.MethodPost, Path: "/workflow/api/v1/jobs/activate", Headers: []string{withToken, jsonLine}, Body: `{"types":["charge"]}`})
	assert.Equal(t, `{"jobs":[],"paused":"jobs are paused"}`, strings.TrimSpace(got.Body))
}

// TestTheOperatorHasJobs: who runs the service has workers without a token.
func TestTheOperatorHasJobs(t *testing.T) {
	for _, p := range []identity.Privilege{identity.Admin, identity.Jobs, identity.Workflows} {
		assert.True(t, kernel.Operator.Has(p), p)
	}
}
