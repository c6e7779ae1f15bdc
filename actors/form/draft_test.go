package form

import (
	"bytes"
	"errors"
	"testing"

	"troupe/actors/failure"
	"troupe/statemachine/data"
)

func FuzzDraft(f *testing.F) {
	d := Draft{Revision: 1 << 40, SavedAt: 5, Data: data.Value(`{"a":[1,"x"]}`)}
	whole := d.Append(nil)
	for n := range whole {
		f.Add(whole[:n])
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseDraft(b)
		if err != nil {
			if !errors.Is(err, failure.ErrExecution) {
				t.Errorf("error of another kind: %v", err)
			}
			return
		}
		again, err := parseDraft(d.Append(nil))
		if err != nil || again.Revision != d.Revision || !bytes.Equal(again.Data, d.Data) {
			t.Errorf("%x: got %+v, then %+v, %v", b, d, again, err)
		}
	})
}
