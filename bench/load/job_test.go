package load

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// jobs gives jobs of two types in turn, and refuses every seventh completion. None waits at each tenth activation.
type jobs struct {
	t                         *testing.T
	activated, given, settled atomic.Int64
	refused                   atomic.Int64
}

func (j *jobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/jobs/activate"):
		var asked struct {
			Types []string
			Max   int
		}
		assert.NoError(j.t, json.NewDecoder(r.Body).Decode(&asked))
		assert.Equal(j.t, []string{"return", "submit"}, asked.Types)
		var given []string
		for range asked.Max {
			n := j.given.Add(1)
			given = append(given, fmt.Sprintf(`{"jobId":"j%d","lease":"l%d","type":"%s","data":{"type":"x","days":3}}`, n, n, asked.Types[n%2]))
		}
		if j.activated.Add(1)%10 == 0 {
			j.given.Add(-int64(len(given)))
			given = nil
		}
		fmt.Fprintf(w, `{"jobs":[%s]}`, strings.Join(given, ","))
	case strings.HasSuffix(r.URL.Path, "/jobs/complete"):
		var asked struct {
			Jobs []struct {
				JobID, Lease string
				Output       struct{ Status string }
			}
		}
		assert.NoError(j.t, json.NewDecoder(r.Body).Decode(&asked))
		var results []string
		for _, of := range asked.Jobs {
			var n int64
			_, err := fmt.Sscanf(of.JobID, "j%d", &n)
			assert.NoError(j.t, err)
			assert.Equal(j.t, fmt.Sprint("l", n), of.Lease, of.JobID)
			assert.Equal(j.t, []string{"returned", "waiting"}[n%2], of.Output.Status, "%s: the output is that of its type", of.JobID)
			result := `{"status":200}`
			if j.settled.Add(1)%7 == 0 {
				j.refused.Add(1)
				result = `{"status":409,"error":"LeaseLost","message":"no"}`
			}
			results = append(results, result)
		}
		fmt.Fprintf(w, `{"results":[%s]}`, strings.Join(results, ","))
	default:
		fmt.Fprint(w, `{"workflowId":"job-request","instanceId":"i","state":{"states":[{"nodeId":"draft"}]}}`)
	}
}

// TestJobsAreTakenAndCompleted: each that was given, with the output of its type, and what was refused is an error.
func TestJobsAreTakenAndCompleted(t *testing.T) {
	inLongerWindows(t, 50*time.Millisecond, func(window time.Duration) bool {
		f, j := newFake(t), &jobs{t: t}
		f.server.Config.Handler = j
		result := f.run(Options{Scenario: Jobs(), Mix: Mix{Job: 1}, Connections: 1, Instances: 3, Batch: 4, Duration: window})
		done, failed := result.Operations, result.ErrorsTotal
		assert.Equal(t, failed, result.Errors["job: status 409 in a batch"], "%v", result.Errors)
		// NB: one job was tried before the window, and one request may have ended behind it.
		assert.LessOrEqual(t, j.settled.Load()-(done+failed), int64(1+4), "%d done, %d failed, %d settled", done, failed, j.settled.Load())
		assert.True(t, done <= j.settled.Load()-j.refused.Load() && failed <= j.refused.Load(), "%d done, %d failed, %d refused", done, failed, j.refused.Load())
		return done > 100
	})
}

func TestAnswersAboutJobs(t *testing.T) {
	for body, want := range map[string]int{
		`{"jobs":[]}`: 0,
		`{"jobs":[{"jobId":"a","lease":"b","type":"c","data":{}},{"jobId":"d","lease":"e","type":"f","data":null}]}`: 2,
		`{"error":"NotFound"}`:            -1,
		`{"jobs":[{"jobId":"a","data":`:   -1,
		`{"jobs":[{"jobId":"a","lease"`:   -1,
		`{"jobs":[{"jobId":"a`:            -1,
		`{"jobs":[{"jobId":"a","lease":"`: -1,
	} {
		jobs, ok := readLeased([]byte(body))
		assert.Equal(t, want >= 0, ok, body)
		if ok {
			assert.Len(t, jobs, want, body)
		}
	}
	for body, want := range map[string]string{
		`{"results":[{"status":200},{"status":200}]}`:                     "2 of <nil> 0",
		`{"results":[{"status":200},{"status":409,"error":"LeaseLost"}]}`: "1 of job: status 409 in a batch 1",
		`{"results":[{"status":409},{"status":404}]}`:                     "0 of job: status 409 in a batch 2",
		`{"results":[{"status":200}]}`:                                    "1 of job: the answer has too few results 1",
		`{"error":"NotFound"}`:                                            "0 of job: the answer has no results 2",
	} {
		s, count := readCompleted([]byte(body), 2), int64(0)
		text := "<nil>"
		if s.fault != nil {
			text, count = s.fault.Error(), s.fault.count
		}
		assert.Equal(t, want, fmt.Sprintf("%d of %s %d", s.operations, text, count), body)
	}
}
