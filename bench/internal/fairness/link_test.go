package fairness

import (
	"bytes"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"troupe/bench/internal/harness"
)

// TestALinkHasItsBytesASecond each way, for all connections together.
func TestALinkHasItsBytesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const megabits = 8 // a million bytes a second
		over := newLink(megabits)
		text := strings.Repeat("x", 1_000_000+linkBurst)
		begun := time.Now()
		for range 2 {
			here, there := net.Pipe()
			got := make(chan []byte)
			go func() {
				all, _ := io.ReadAll(there)
				got <- all
			}()
			c := over.carry(here)
			if n, err := io.WriteString(c, text); n != len(text) || err != nil {
				t.Fatalf("sent %d, %v", n, err)
			}
			_ = c.Close()
			if !bytes.Equal(<-got, []byte(text)) {
				t.Error("something else has come")
			}
		}
		const want = 2*time.Second + linkBurst*time.Microsecond // a burst goes at once
		if took := time.Since(begun); (took - want).Abs() > time.Millisecond {
			t.Errorf("it took %s, want %s", took, want)
		}
		here, there := net.Pipe()
		go func() {
			_, _ = io.WriteString(there, text)
			_ = there.Close()
		}()
		begun = time.Now()
		if all, err := io.ReadAll(over.carry(here)); len(all) != len(text) || err != nil {
			t.Errorf("read %d, %v", len(all), err)
		}
		if took := time.Since(begun); (took - time.Second).Abs() > time.Millisecond {
			t.Errorf("the way back took %s, want a second", took)
		}
	})
	if newLink(0) != nil {
		t.Error("a link of no rate has one")
	}
}

// TestABareServerRefusesEverything but the question whether it is there.
func TestABareServerRefusesEverything(t *testing.T) {
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	p, err := startRefuser(t.Context(), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	e := newHostile(p.Addr, &home{hostile: credentials{"t", "c"}, hostileIDs: []string{"01"}}, &measurement{loops: 1, connections: 1, link: 1000})
	defer e.close()
	e.budget.Store(3)
	e.loop(t.Context(), e.caller, 2, e.floodEvents)
	if want := map[string]int64{"status 503": 3}; !maps.Equal(e.got.Outcome(time.Second).Errors, want) {
		t.Errorf("got %v, want %v", e.got.Outcome(time.Second).Errors, want)
	}
}

// TestTheRecordSaysWhatWasAttacked, and over what.
func TestTheRecordSaysWhatWasAttacked(t *testing.T) {
	for args, want := range map[string]string{
		"":              "the hostile one comes over 1000 Mbit/s each way",
		"-link 0 -bare": "the hostile one comes over loopback, to a server that refuses everything, and not to this one",
	} {
		m, err := parse(harness.New("fairness", strings.Fields(args), io.Discard, io.Discard))
		if err != nil || m.aim() != want {
			t.Errorf("%q: got %q, %v, want %q", args, m.aim(), err, want)
		}
	}
}
