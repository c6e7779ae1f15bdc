package storetest

import (
	"net"
	"time"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Alone is the replication of a store that reaches no other node, and leads nothing.
func Alone() *persistence.Replication {
	return &persistence.Replication{Node: "alone", Streams: func(key.Shard) replica.Streams { return noStreams{make(chan struct{})} }}
}

type noStreams struct{ closed chan struct{} }

func (s noStreams) Accept() (net.Conn, error) {
	<-s.closed
	return nil, net.ErrClosed
}

func (noStreams) Dial(string, time.Duration) (net.Conn, error) { return nil, net.ErrClosed }

func (s noStreams) Close() error {
	close(s.closed)
	return nil
}
