package retry

import (
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
)

// FuzzFirst: any bytes are a first answer or failure.ErrExecution.
func FuzzFirst(f *testing.F) {
	whole := (&First{Sequence: 3, At: 5, Head: []byte(`"a":1`), Tail: []byte(`"b":2`)}).Append(nil)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			require.ErrorIs(t, err, failure.ErrExecution, "error of another kind")
			return
		}
		again, err := Parse(s.Append(nil))
		require.True(t, err == nil && again.Sequence == s.Sequence && again.At == s.At && string(again.Head) == string(s.Head) && string(again.Tail) == string(s.Tail),
			"written and read again: got %+v, %v, want %+v", again, err, s)
	})
}
