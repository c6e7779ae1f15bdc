package servertest

import (
	"net"
	"testing"
)

func TestNobody(t *testing.T) {
	address := Nobody(t)
	if c, err := net.Dial("tcp", address); err == nil {
		_ = c.Close()
		t.Errorf("somebody listens at %s", address)
	}
	if l, err := net.Listen("tcp", address); err == nil {
		_ = l.Close()
		t.Errorf("anybody may listen at %s", address)
	}
}
