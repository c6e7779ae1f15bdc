package statemachine

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestADamagedRecordWithARightChecksum changes and cuts a record at every byte and
// makes the checksum fit. Each is ErrRecord, or an instance that is whole.
func TestADamagedRecordWithARightChecksum(t *testing.T) {
	d := parseChart(t, `
id: w
stateMachines:
  m:
    initial: p
    states:
      p:
        type: parallel
        on: {pause: q}
        states:
          l: {initial: a, states: {a: {on: {go: b}}, b: {on: {go: a}}}}
          r: {initial: c, states: {c: {on: {go: e}}, e: {on: {go: c}}}}
          h: {type: history, history: deep}
      q: {on: {resume: h}}
`)
	caller := &Caller{ID: "u"}
	r := started(t, d)
	for _, event := range []EventName{"go", "pause", "resume"} {
		var err error
		r, err = d.Step(&r.Instance, Event{Name: event, Caller: caller, Now: time.Unix(1, 0)})
		require.NoError(t, err)
	}
	restored, refused := 0, 0
	try := func(body []byte) {
		record, err := ParseRecord(binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))))
		var in Instance
		if err == nil {
			in, err = d.Restore("i", record)
		}
		switch {
		case err == nil:
			restored++
			checkWhole(t, d, &in)
		case errors.Is(err, ErrRecord):
			refused++
		default:
			t.Fatalf("%q: error of another kind: %v", body, err)
		}
	}
	for _, attachment := range []string{"", "beside it"} {
		whole := d.AppendRecord(nil, &r.Instance, Chain{1, 2, 3}, []byte(attachment))
		body := whole[: len(whole)-4 : len(whole)-4]
		for i := range body {
			try(append([]byte(nil), body[:i]...))
			for _, change := range []byte{1, 2, 4, 'a' ^ 'b', 'c' ^ 'e', 'l' ^ 'r', 'p' ^ 'q', 0x80, 0xff} {
				changed := append([]byte(nil), body...)
				changed[i] ^= change
				try(changed)
			}
		}
	}
	assert.True(t, restored != 0 && refused != 0, "%d restored and %d refused: the test tested nothing", restored, refused)
}
