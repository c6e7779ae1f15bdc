package process

import (
	"net/netip"
	"testing"
)

// TestNoPortIsGivenTwice: a port that was drawn is let go until the server listens, so that another draw or a
// connection could have it. 32768 is where the systems' own begin.
func TestNoPortIsGivenTwice(t *testing.T) {
	before := map[string]bool{}
	for range 500 {
		addr, err := FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		if at := netip.MustParseAddrPort(addr); before[addr] || at.Port() >= 32_768 {
			t.Errorf("got %s", addr)
		}
		before[addr] = true
	}
}
