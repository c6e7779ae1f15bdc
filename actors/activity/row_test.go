package activity

import (
	"testing"
	"time"

	"troupe/persistence"
	"troupe/statemachine"
)

// FuzzParse holds that a row is read back as it was written, and that any other bytes are refused.
func FuzzParse(f *testing.F) {
	key := persistence.ActivityKey(nil, 1, persistence.ID{1}, 7, 2)
	at := time.UnixMilli(1_800_000_000_123).UTC()
	for _, r := range []Row{
		{Kind: Comment, At: at, User: "john", Text: "hello"},
		{Kind: Assigned, At: at, User: "mary", Task: statemachine.PartID{Sequence: 6, Number: 1}, Node: statemachine.Position{Machine: "main", Node: "review"}, To: "john"},
	} {
		f.Add(key, r.Append(nil))
	}
	f.Add([]byte("x"), []byte{})
	f.Fuzz(func(t *testing.T, key, stored []byte) {
		of, err := Parse(key, stored)
		if err != nil {
			if of != (Row{}) {
				t.Errorf("got %+v beside %v", of, err)
			}
			return
		}
		if of.Kind == 0 || of.Kind >= kinds || of.Kind.String() == "" {
			t.Errorf("got the kind %d", of.Kind)
		}
		if again, err := Parse(key, of.Append(nil)); err != nil || again != of {
			t.Errorf("%x: got %+v, then %+v, %v", stored, of, again, err)
		}
	})
}
