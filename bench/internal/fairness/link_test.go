package fairness

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
}
