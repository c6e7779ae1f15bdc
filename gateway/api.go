package gateway

import (
	"net"

	"troupe/gateway/internal/cors"
	"troupe/gateway/internal/design"
	"troupe/gateway/internal/forward"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/operate"
	"troupe/gateway/internal/session"
)

// What those who run a Server name; the packages below have the rest.
type (
	// Options says how a Server works. The zero value works.
	Options = kernel.Options
	// Certificates are those of a listener and of its callers.
	Certificates = kernel.Certificates
	// Build says how the program was built.
	Build = kernel.Build
	// Metrics is a snapshot of what a Server counts since it was made.
	Metrics = kernel.Metrics
	// Answers counts those of one route to one method with one status.
	Answers = kernel.Answers
	// Observer takes how long answers took.
	Observer = kernel.Observer
	// Part is something whose state /readyz shows.
	Part = operate.Part
	// Peers reaches the other nodes of a cluster.
	Peers = forward.Peers
	// Peer is a node of the cluster.
	Peer = forward.Peer
	// Definitions is what showing and publishing definitions needs.
	Definitions = design.Definitions
	// DefinitionRequest is a definition that somebody publishes.
	DefinitionRequest = design.DefinitionRequest
	// Homes is what publishing homes needs.
	Homes = operate.Homes
)

// CheckBasePath refuses what cannot be Options.BasePath.
func CheckBasePath(path string) error { return kernel.CheckBasePath(path) }

// CheckCookieName refuses what cannot be Options.SessionCookie.
func CheckCookieName(name string) error { return kernel.CheckCookieName(name) }

// CheckOrigins refuses what cannot be Options.Origins.
func CheckOrigins(origins []string) error { return cors.Origins(origins).Check() }

// IsLoopback reports whether no other machine can reach a listener's address.
func IsLoopback(a net.Addr) bool { return session.IsLoopback(a) }
