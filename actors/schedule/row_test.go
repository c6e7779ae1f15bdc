package schedule

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func rows() []row {
	at := time.UnixMilli(1_800_000_000_123).UTC()
	return []row{{upTo: at}, {paused: true, upTo: at, last: at.Add(time.Second)}, {upTo: at, lastError: "access denied"}}
}

func TestARowIsReadAsItWasWritten(t *testing.T) {
	for _, want := range rows() {
		got, err := parseRow(want.append(nil))
		assert.True(t, err == nil && *got == want, "got %+v, %v, want %+v", got, err, want)
	}
}

func FuzzParseRow(f *testing.F) {
	for _, r := range rows() {
		f.Add(r.append(nil))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		r, err := parseRow(stored)
		if err != nil {
			assert.ErrorIs(t, err, ErrDamaged)
			return
		}
		again, err := parseRow(r.append(nil))
		assert.True(t, err == nil && bytes.Equal(again.append(nil), r.append(nil)), "%+v is read as %+v, %v", r, again, err)
	})
}
