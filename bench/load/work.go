package load

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
)

// JobsDefault is how many jobs a request of the kind Job takes when Options.Batch does not say.
const JobsDefault = 32

// JobsMax bounds them, as the interface does.
const JobsMax = 1000

// work is what the program does that takes the jobs of a scenario: the output of each type.
type work struct {
	user    int // in Scenario.Users
	outputs map[string]text
	types   []string // of these, sorted
}

func (s *Scenario) setWork(user int, outputs map[string]text) {
	s.work = &work{user, outputs, slices.Sorted(maps.Keys(outputs))}
}

// Works reports whether jobs can be done: the scenario says with which outputs.
func (s *Scenario) Works() bool { return s.work != nil }

// leased is a job of an activation.
type leased struct{ id, lease, kind []byte }

var (
	jobsHead = []byte(`{"jobs":[`)
	jobHead  = []byte(`{"jobId":"`)
	leaseKey = []byte(`"lease":"`)
	typeKey  = []byte(`"type":"`)
)

// readLeased reads the jobs of an activation, whose members have the order of gateway/INTERFACE.md, "Jobs".
func readLeased(body []byte) (jobs []leased, ok bool) {
	rest, ok := bytes.CutPrefix(body, jobsHead)
	for ok {
		_, after, more := bytes.Cut(rest, jobHead)
		if !more {
			break
		}
		var j leased
		if j.id, rest, ok = bytes.Cut(after, []byte{'"'}); ok {
			j.lease, rest, ok = cutText(rest, leaseKey)
		}
		if ok {
			j.kind, rest, ok = cutText(rest, typeKey)
		}
		jobs = append(jobs, j)
	}
	return jobs, ok
}

// cutText returns the text behind a key, and what follows it.
func cutText(src, key []byte) (value, rest []byte, ok bool) {
	if _, src, ok = bytes.Cut(src, key); !ok {
		return nil, nil, false
	}
	return bytes.Cut(src, []byte{'"'})
}

// leaseLength is long enough for a batch at a server that is busy.
const leaseLength = "PT1M"

// activate returns a request for up to n jobs of the scenario.
func (s *script) activate(n int, wait string) []byte {
	w := s.scenario.work
	s.body = append(s.body[:0], `{"types":[`...)
	for i, kind := range w.types {
		if i > 0 {
			s.body = append(s.body, ',')
		}
		s.body = strconv.AppendQuote(s.body, kind)
	}
	s.body = append(s.body, `],"worker":"bench","max":`...)
	s.body = strconv.AppendInt(s.body, int64(n), 10)
	s.body = append(s.body, `,"lease":"`+leaseLength+`","wait":"`...)
	s.body = append(s.body, wait...)
	s.body = append(s.body, `"}`...)
	return s.post(s.users[w.user].activate)
}

// complete returns a request that completes jobs, each with the output of its type.
func (s *script) complete(jobs []leased) []byte {
	w := s.scenario.work
	s.body = append(s.body[:0], `{"jobs":[`...)
	for i, j := range jobs {
		if i > 0 {
			s.body = append(s.body, ',')
		}
		s.body = append(s.body, `{"jobId":"`...)
		s.body = append(s.body, j.id...)
		s.body = append(s.body, `","lease":"`...)
		s.body = append(s.body, j.lease...)
		s.body = append(s.body, '"')
		if output := w.outputs[string(j.kind)]; len(output) > 0 {
			s.body = append(s.body, `,"output":`...)
			s.body = output.append(s.body, &s.content)
		}
		s.body = append(s.body, '}')
	}
	s.body = append(s.body, `]}`...)
	return s.post(s.users[w.user].complete)
}
