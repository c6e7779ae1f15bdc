package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"troupe/persistence/clocktest"
)

// TestAnAuthorityOfTheFuture: it was renewed by a clock that was ahead, and keeps no node from its own
// certificate.
func TestAnAuthorityOfTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.end()
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
		if !a.identity.Expires().After(expired) {
			t.Errorf("its certificate ends at %s as before", expired)
		}
	})
}
