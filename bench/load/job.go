package load

import (
	"bytes"
	"fmt"
)

// doJobs takes up to n jobs and completes them: a request of two exchanges. It is without fault and without operations when no
// job came in wait, a duration of ISO 8601.
func (w *worker) doJobs(n int, wait string) sent {
	body, f := w.ask(Job, w.script.activate(n, wait))
	if f != nil {
		return sentOne(Job, f)
	}
	jobs, ok := readLeased(body)
	if !ok {
		return sentOne(Job, &fault{kind: Job, reason: "the answer has no jobs"})
	}
	if len(jobs) == 0 {
		return sent{kind: Job}
	}
	request := w.script.complete(jobs) // NB: jobs are parts of an answer that is gone with the next one
	body, f = w.ask(Job, request)
	if f != nil {
		f.count = int64(len(jobs))
		return sent{kind: Job, fault: f} // NB: also when it is shed: they are done when their leases have run out
	}
	return readCompleted(body, len(jobs))
}

// readCompleted counts the results of n jobs.
func readCompleted(body []byte, n int) sent {
	s := sent{kind: Job}
	rest, ok := bytes.CutPrefix(body, resultsHead)
	if !ok {
		s.fault = &fault{kind: Job, reason: "the answer has no results", count: int64(n)}
		return s
	}
	for i := range n {
		_, after, found := bytes.Cut(rest, resultHead)
		if !found || len(after) < 4 {
			s.fault = &fault{kind: Job, reason: "the answer has too few results", count: int64(n - i)}
			return s
		}
		rest = after
		if status := string(after[:3]); status == "200" {
			s.operations++
		} else if s.fault == nil {
			s.fault = &fault{kind: Job, reason: fmt.Sprintf("status %s in a batch", status), count: 1}
		} else {
			s.fault.count++
		}
	}
	return s
}
