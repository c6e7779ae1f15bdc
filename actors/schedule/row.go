package schedule

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// row is what became of a schedule's runs.
type row struct {
	paused bool
	// upTo is the time up to which all runs were made or left out.
	upTo time.Time
	// last is when an instance was created last; zero: never. lastError is why the last run created none.
	last      time.Time
	lastError string
	// times are the zone and the expression for which upTo counts.
	times string
}

const (
	rowFormat = 1
	// lastErrorMax bounds row.lastError, in bytes.
	lastErrorMax = 1 << 10
)

// ErrDamaged: the row of a schedule cannot be read.
var ErrDamaged = errors.New("a schedule cannot be read")

// append appends the stored form: format(1) paused(1) upTo last (varints, in ms; a last of 0 is none) the error and the times.
func (r *row) append(dst []byte) []byte {
	paused, last := byte(0), int64(0)
	if r.paused {
		paused = 1
	}
	if !r.last.IsZero() {
		last = r.last.UnixMilli()
	}
	dst = binary.AppendVarint(append(dst, rowFormat, paused), r.upTo.UnixMilli())
	return packed.AppendText(packed.AppendText(binary.AppendVarint(dst, last), data.Clip(r.lastError, lastErrorMax)), r.times)
}

func parseRow(stored []byte) (*row, error) {
	r := packed.NewReader(stored)
	format, paused := r.Byte(), r.Byte()
	out := &row{paused: paused == 1, upTo: time.UnixMilli(r.Varint()).UTC()}
	if last := r.Varint(); last != 0 {
		out.last = time.UnixMilli(last).UTC()
	}
	out.lastError, out.times = string(r.Text()), string(r.Text())
	if format != rowFormat || paused > 1 || !r.Whole() {
		return nil, fmt.Errorf("%w: layout", ErrDamaged)
	}
	return out, nil
}
