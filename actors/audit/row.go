package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"troupe/statemachine"
	"troupe/statemachine/packed"
)

// ErrDamaged marks a stored row that cannot be read.
var ErrDamaged = errors.New("damaged row of the audit log")

// Row is one row of the log, as it is shown and exported.
type Row struct {
	TS     string `json:"ts"`     // statemachine.TimeLayout; never before that of the row before
	Actor  string `json:"actor"`  // who did it: a user, statemachine.System, or nobody that is known
	Action Action `json:"action"` // what
	Target string `json:"target"` // to which id
	// Count is of how much a row tells that was not written one by one. Zero: the row is of one action.
	Count uint64 `json:"count,omitempty"`
	Hash  string `json:"hash"` // of the row and Prev, in hexadecimal; see Sum
	Prev  string `json:"prev"` // hash of the row before, Genesis in the first one
}

// Genesis is Prev of the first row.
var Genesis = strings.Repeat("0", 2*sha256.Size)

// Sum is what Hash must be: the SHA-256 of Prev, TS, Actor, Action, Target and, if it is not zero, Count, joined by
// line feeds. No member has one.
func (r *Row) Sum() string {
	h := sha256.New()
	_, _ = io.WriteString(h, strings.Join([]string{r.Prev, r.TS, r.Actor, string(r.Action), r.Target}, "\n")) // a hash takes everything
	if r.Count != 0 {
		_, _ = io.WriteString(h, "\n"+strconv.FormatUint(r.Count, 10))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Follows returns what is wrong with a row behind one whose hash is prev; nil: nothing.
func (r *Row) Follows(prev string) error {
	switch {
	case r.Prev != prev:
		return fmt.Errorf("the row at %s names another row as the one before it: rows were removed, added or put elsewhere", r.TS)
	case r.Hash != r.Sum():
		return fmt.Errorf("the row at %s (%s by %q) is not what was written: its hash is another", r.TS, r.Action, r.Actor)
	}
	return nil
}

const rowVersion = 1

// textMax bounds the actor and the target of a row, in bytes.
const textMax = 300

// clean is a text as it may stand in a row: short, and in one line.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
	for len(text) > textMax {
		text = strings.ToValidUTF8(text[:textMax], "")
	}
	return text
}

// version 1 byte, ts varint Unix milliseconds, count uvarint,
// actor, action, target: each a uvarint length and its bytes,
// hash, prev: 32 bytes each
func (r *Row) append(dst []byte) []byte {
	at, _ := time.Parse(statemachine.TimeLayout, r.TS)
	dst = binary.AppendUvarint(packed.AppendTime(append(dst, rowVersion), at), r.Count)
	dst = packed.AppendText(packed.AppendText(packed.AppendText(dst, r.Actor), r.Action), r.Target)
	for _, sum := range []string{r.Hash, r.Prev} {
		raw, _ := hex.DecodeString(sum)
		dst = append(dst, raw...)
	}
	return dst
}

func parseRow(stored []byte) (*Row, error) {
	p := packed.NewReader(stored)
	if p.Byte() != rowVersion {
		return nil, fmt.Errorf("%w: not of version %d", ErrDamaged, rowVersion)
	}
	r := &Row{TS: p.Time().Format(statemachine.TimeLayout), Count: p.Uvarint()}
	r.Actor, r.Action, r.Target = string(p.Text()), Action(p.Text()), string(p.Text())
	r.Hash, r.Prev = hex.EncodeToString(p.Take(sha256.Size)), hex.EncodeToString(p.Take(sha256.Size))
	if !p.Whole() {
		return nil, fmt.Errorf("%w: %d bytes do not hold one", ErrDamaged, len(stored))
	}
	return r, nil
}

// Chain is what Verify has found.
type Chain struct {
	Rows uint64 `json:"rows"`
	// Head is the hash of the newest row. Somebody who keeps it elsewhere can tell later that no row up to it is gone.
	Head string `json:"head"`
	// Broken says where the chain breaks first; empty: it is whole.
	Broken string `json:"broken,omitempty"`
}

// Verifier walks along a chain.
type Verifier struct{ Chain }

// NewVerifier begins in front of the first row.
func NewVerifier() *Verifier { return &Verifier{Chain{Head: Genesis}} }

// Next takes the next row. It is false when the chain breaks there, and has broken before.
func (v *Verifier) Next(r *Row) bool {
	if v.Broken == "" {
		if err := r.Follows(v.Head); err != nil {
			v.Break(err)
			return false
		}
		v.Rows, v.Head = v.Rows+1, r.Hash
	}
	return v.Broken == ""
}

// Break notes that the next row cannot be read.
func (v *Verifier) Break(err error) { v.Broken = fmt.Sprintf("row %d: %v", v.Rows+1, err) }
