package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"syscall"
)

// FreeAddr returns a loopback address that nobody listens on, each one once, on Linux also among all programs
// that ask here. Its port is none of those that systems give to connections: a connection cannot take it before
// the server listens, nor after the server was killed, and none can reach itself there.
func FreeAddr() (string, error) {
	var err error
	for range 100 {
		port := 12_000 + rand.IntN(18_000)
		if !claim(port) {
			err = fmt.Errorf("port %d is given already", port)
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", err
}

// claims has the ports that were given, with what keeps them from other programs.
var claims struct {
	sync.Mutex
	of map[int]net.Listener
}

// claim reports whether a port is given for the first time. It stays claimed until this program ends.
func claim(port int) bool {
	claims.Lock()
	defer claims.Unlock()
	if _, given := claims.of[port]; given {
		return false
	}
	var l net.Listener
	if runtime.GOOS == "linux" {
		var err error
		if l, err = net.Listen("unix", claimName(port)); errors.Is(err, syscall.EADDRINUSE) {
			return false
		}
	}
	if claims.of == nil {
		claims.of = map[int]net.Listener{}
	}
	claims.of[port] = l
	return true
}

// claimName is a name of Linux that only one program has at a time, without a file, and that goes with it.
func claimName(port int) string { return fmt.Sprintf("@troupe-port-%d", port) }
