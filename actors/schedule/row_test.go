package schedule

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func rows() []row {
	at := time.UnixMilli(1_800_000_000_123).UTC()
	return []row{{upTo: at}, {paused: true, upTo: at, last: at.Add(time.Second)}, {upTo: at, lastError: "access denied"}}
}

func TestARowIsReadAsItWasWritten(t *testing.T) {
	for _, want := range rows() {
		if got, err := parseRow(want.append(nil)); err != nil || *got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func FuzzParseRow(f *testing.F) {
	for _, r := range rows() {
		f.Add(r.append(nil))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		r, err := parseRow(stored)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("got %v", err)
			}
			return
		}
		again, err := parseRow(r.append(nil))
		if err != nil || !bytes.Equal(again.append(nil), r.append(nil)) {
			t.Errorf("%+v is read as %+v, %v", r, again, err)
		}
	})
}
