package peer

import "errors"

// Causes for which a certificate is refused. They come from Dial, RoundTrip, DialJoin
// and Identity.Accept. What is said behind them tells which certificate it was.
var (
	// ErrOtherCluster: both ends are nodes, of different clusters.
	ErrOtherCluster = errors.New("it belongs to another cluster")
	// ErrExpired: the certificate is not valid at the time that the clock here shows.
	ErrExpired = errors.New("its certificate is not valid now: check the clocks of both nodes")
	// ErrNotNode: it is no certificate of a node, or there is none.
	ErrNotNode = errors.New("it shows no certificate of a node")
	// ErrNotIssued: the certificate was not signed by a trusted authority.
	ErrNotIssued = errors.New("its certificate was not issued by the authority of this cluster")
	// ErrOtherNode: at the address is another node than the one that was dialed.
	ErrOtherNode = errors.New("another node answers there")
	// ErrRefused: the other node does not take the certificate of this one. It does not say why.
	ErrRefused = errors.New("it does not take the certificate of this node: the node was removed from the cluster, or a clock is wrong")
	// ErrNotMember: the certificate is good, and Options.Admits does not admit the node.
	ErrNotMember = errors.New("the node does not belong to the cluster")
)

var (
	// ErrUnknownNode is for Dial and RoundTrip: Options.Resolve knows no address of the node.
	ErrUnknownNode = errors.New("no address of the node is known")
	// ErrNotSent is for RoundTrip: there never was a connection, so the other node has nothing of the
	// request. The text is that of the cause.
	ErrNotSent = errors.New("nothing was sent")
	// ErrStopped is for calls of a port, or of a shard's streams, after their end.
	ErrStopped = errors.New("the cluster port is stopped")
	// ErrShardTaken is for Streams: they are in use already. Close them first.
	ErrShardTaken    = errors.New("the streams of the shard are in use")
	ErrNoCertificate = errors.New("the identity has no certificate yet") // for an identity before Accept
	// ErrJoinKey is for ParseJoinKey. The text behind it says what is wrong with the key.
	ErrJoinKey = errors.New("join key")
	// ErrCorrupt is for stored bytes of an identity or an authority that do not fit together.
	ErrCorrupt = errors.New("damaged bytes")
)

// notSent is the cause of an ErrNotSent.
type notSent struct{ error }

func (n notSent) Unwrap() []error { return []error{ErrNotSent, n.error} }
