package load

import (
	"bytes"
	"fmt"
)

type batched struct {
	subject *subject
	before  *place // where the subject stood
	became  became
}

type became int

const (
	unknown became = iota // it may have happened, or may happen yet
	done
	refused // the server was too busy and did nothing
)

// sendBatch brings n subjects on by one event each, in one request. Some may fail
// while others do not: the fault is then the first one's reason and the number of all.
// Those that were refused are counted apart, and stay where they were.
func (w *worker) sendBatch(n int) sent {
	w.batch = w.batch[:0]
	w.script.beginBatch()
	user := 0
	for range n {
		s := w.nextSubject()
		t := s.at.pick(w.random)
		w.script.addToBatch(s.id, t)
		w.batch = append(w.batch, batched{subject: s, before: s.at})
		s.at, user = t.to, t.user
	}
	s := w.askBatch(user)
	for i := n - 1; i >= 0; i-- { // the last first: a subject may be there twice
		switch b := &w.batch[i]; b.became {
		case refused:
			b.subject.at = b.before
		case unknown:
			b.subject.sure = false
		}
	}
	return s
}

func (w *worker) askBatch(user int) sent {
	body, f := w.ask(Event, w.script.endBatch(user))
	switch {
	case f == nil:
		return readBatch(body, w.batch)
	case f.shed:
		for i := range w.batch {
			w.batch[i].became = refused
		}
		return sent{kind: Event, shed: int64(len(w.batch)), fault: f}
	}
	f.count = int64(len(w.batch))
	return sent{kind: Event, fault: f}
}

var (
	resultsHead = []byte(`{"results":[`)
	resultHead  = []byte(`{"status":`)
	instanceKey = []byte(`"instanceId":"`)
)

// readBatch reads the results, one for each event and in their order
// (gateway/openapi.yaml, sendBatch), and notes what became of each.
func readBatch(body []byte, batch []batched) sent {
	s := sent{kind: Event}
	fail := func(count int, reason string) sent {
		if s.fault == nil {
			s.fault = &fault{kind: Event, reason: reason}
		}
		s.fault.count += int64(count)
		return s
	}
	rest, ok := bytes.CutPrefix(body, resultsHead)
	if !ok {
		return fail(len(batch), "the answer has no results")
	}
	for i := range batch {
		_, after, found := bytes.Cut(rest, resultHead)
		if !found || len(after) < 4 {
			return fail(len(batch)-i, "the answer has too few results")
		}
		rest = after
		status, err := parseDigits(after[:3])
		switch {
		case err != nil:
			return fail(len(batch)-i, "the answer has a result without a status")
		case status == 200:
			if _, after, found = bytes.Cut(rest, instanceKey); !found || !bytes.HasPrefix(after, []byte(batch[i].subject.id)) {
				return fail(len(batch)-i, "a result is about something else")
			}
			rest = after
			batch[i].became = done
			s.operations++
		case IsShed(status):
			batch[i].became = refused
			s.shed++
		default:
			fail(1, fmt.Sprintf("status %d in a batch", status))
		}
	}
	if bytes.Contains(rest, resultHead) {
		return fail(1, "the answer has too many results")
	}
	return s
}
