package peer

import "errors"

// Causes for which a certificate is refused. What is said behind them tells which certificate it was.
var (
	ErrOtherCluster = errors.New("it belongs to another cluster")
	ErrExpired      = errors.New("its certificate is not valid now: check the clocks of both nodes")
	ErrNotNode      = errors.New("it shows no certificate of a node")
	ErrNotIssued    = errors.New("its certificate was not issued by the authority of this cluster")
	ErrOtherNode    = errors.New("another node answers there")
	// ErrRefused: the other node does not take the certificate of this one. It does not say why.
	ErrRefused   = errors.New("it does not take the certificate of this node: the node was removed from the cluster, or a clock is wrong")
	ErrNotMember = errors.New("the node does not belong to the cluster")
)

var (
	ErrUnknownNode = errors.New("no address of the node is known")
	// ErrNotSent is for RoundTrip: there never was a connection, so the other node has nothing of the request.
	ErrNotSent       = errors.New("nothing was sent")
	ErrStopped       = errors.New("the cluster port is stopped")
	ErrShardTaken    = errors.New("the streams of the shard are in use")
	ErrNoCertificate = errors.New("the identity has no certificate yet") // for an identity before Accept
	// ErrJoinKey is for ParseJoinKey. The text behind it says what is wrong with the key.
	ErrJoinKey = errors.New("join key")
	// ErrCorrupt is for stored bytes of an identity or an authority that do not fit together.
	ErrCorrupt = errors.New("damaged bytes")
)

type notSent struct{ error }

func (n notSent) Unwrap() []error { return []error{ErrNotSent, n.error} }
