package cluster

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/clocktest"
)

// TestAnAuthorityOfTheFuture: it was renewed by a clock that was ahead, and keeps no node from its own
// certificate.
func TestAnAuthorityOfTheFuture(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		a := w.first()
		w.await("one node", func() bool { return w.whole(1) })
		a.stop(true)
		authority, err := a.files.authority()
		w.check(err)
		ahead, err := authority.Renewed(time.Now().AddDate(8, 0, 0))
		w.check(err)
		text, err := ahead.Marshal()
		w.check(err)
		w.check(a.files.write(authorityFile, text))
		clocktest.Advance(80 * 24 * time.Hour)
		expired := a.identity.Expires()
		w.check(a.start())
		assert.True(t, a.identity.Expires().After(expired), "its certificate ends at %s as before", expired)
	})
}

// lines are those of a log that have a text.
type lines struct {
	with string
	mu   sync.Mutex
	got  [][]byte
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(line, []byte(l.with)) {
		l.got = append(l.got, bytes.Clone(line))
	}
	return len(line), nil
}

// TestStrangersDoNotFillTheLog: one warning a second, and a short one.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		a, warned := w.first(), &lines{with: `"warn"`}
		a.stop(true)
		a.log = warned
		w.check(a.start())
		w.await("one node", func() bool { return w.whole(1) })
		before := len(warned.got)
		for range 2 {
			for range 10 {
				a.join(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/join", strings.NewReader(`{"address": "`+strings.Repeat("x", 60000)+`"}`)))
			}
			clocktest.Advance(time.Second)
		}
		got := warned.got[before:]
		assert.Len(t, got, 2, "warnings in two seconds, want 2")
		for _, line := range warned.got[before:] {
			assert.LessOrEqual(t, len(line), 1000, "a line")
		}
	})
}
