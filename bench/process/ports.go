package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// given are the ports that FreeAddr has returned.
var given sync.Map

// FreeAddr returns a loopback address that nobody listens on, each one once. Its port is none of those that
// systems give to connections: a connection cannot take it before the server listens, nor after the server was
// killed, and none can reach itself there.
func FreeAddr() (string, error) {
	var err error
	for range 100 {
		port := 12_000 + rand.IntN(18_000)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
			continue
		}
		if err = l.Close(); err != nil {
			return "", err
		}
		if _, before := given.LoadOrStore(port, true); !before {
			return l.Addr().String(), nil
		}
		err = fmt.Errorf("port %d is given already", port)
	}
	return "", err
}
