package workflow

import (
	"errors"
	"testing"

	"troupe/actors/failure"
)

// FuzzStoredReply: any bytes are a stored reply or failure.ErrExecution.
func FuzzStoredReply(f *testing.F) {
	whole := (&storedReply{sequence: 3, at: 5, head: []byte(`"a":1`), tail: []byte(`"b":2`)}).append(nil)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStoredReply(b)
		if err != nil {
			if !errors.Is(err, failure.ErrExecution) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		again, err := parseStoredReply(s.append(nil))
		if err != nil || again.sequence != s.sequence || again.at != s.at ||
			string(again.head) != string(s.head) || string(again.tail) != string(s.tail) {
			t.Fatalf("written and read again: got %+v, %v, want %+v", again, err, s)
		}
	})
}
