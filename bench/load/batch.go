package load

import (
	"bytes"
	"fmt"
)

// sendBatch brings n subjects on by one event each, in one request. Some may fail
// while others do not: the fault is then the first one's reason and the number of all.
func (w *worker) sendBatch(n int) sent {
	w.batch = w.batch[:0]
	w.script.beginBatch()
	user := 0
	for range n {
		s := w.nextSubject()
		t := s.at.pick(w.random)
		w.script.addToBatch(s.id, t)
		w.batch = append(w.batch, *s)
		s.at, user = t.to, t.user
	}
	body, f := w.ask(Event, w.script.endBatch(user))
	if f != nil {
		// Each of them may have happened, or may happen yet.
		for i := range w.subjects {
			w.subjects[i].sure = false
		}
		return sent{kind: Event, fault: f}
	}
	done, f := checkBatch(body, w.batch)
	if f != nil {
		for i := range w.subjects {
			w.subjects[i].sure = false
		}
	}
	return sent{kind: Event, operations: done, fault: f}
}

var (
	resultsHead = []byte(`{"results":[`)
	resultHead  = []byte(`{"status":`)
	instanceKey = []byte(`"instanceId":"`)
)

// checkBatch reads the results, one for each subject and in their order
// (gateway/openapi.yaml, sendBatch), and returns how many were carried out.
func checkBatch(body []byte, batch []subject) (done int64, f *fault) {
	rest, ok := bytes.CutPrefix(body, resultsHead)
	if !ok {
		return 0, &fault{kind: Event, reason: "the answer has no results"}
	}
	for i := range batch {
		_, after, found := bytes.Cut(rest, resultHead)
		if !found || len(after) < 4 {
			return done, &fault{kind: Event, reason: "the answer has too few results", count: int64(len(batch) - i)}
		}
		rest = after
		status, err := parseDigits(after[:3])
		switch {
		case err != nil:
			return done, &fault{kind: Event, reason: "the answer has a result without a status", count: int64(len(batch) - i)}
		case status == 200:
			if _, after, found = bytes.Cut(rest, instanceKey); !found || !bytes.HasPrefix(after, []byte(batch[i].id)) {
				return done, &fault{kind: Event, reason: "a result is about something else", count: int64(len(batch) - i)}
			}
			rest = after
			done++
		case f == nil:
			f = &fault{kind: Event, reason: fmt.Sprintf("status %d in a batch", status), shed: isShed(status), count: 1}
		default:
			f.count++
		}
	}
	if bytes.Contains(rest, resultHead) {
		return done, &fault{kind: Event, reason: "the answer has too many results"}
	}
	return done, f
}
