package process

import (
	"net"
	"net/netip"
	"runtime"
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

// TestAPortOfAnotherProgramIsNotGiven: the tests of packages run beside each other, and each draws.
func TestAPortOfAnotherProgramIsNotGiven(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has names that leave no file")
	}
	const port = 11_999 // none that is drawn
	other, err := net.Listen("unix", claimName(port))
	if err != nil {
		t.Fatal(err)
	}
	if claim(port) {
		t.Error("it is given while another program has it")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if !claim(port) || claim(port) {
		t.Error("it is not given once when nobody has it")
	}
}
