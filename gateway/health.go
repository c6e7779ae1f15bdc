package gateway

import (
	"encoding/json"
	"net/http"

	"troupe/actors/failure"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// Part is something whose state /readyz shows. A part that is not Optional turns it
// to 503 while it is not ready; no part decides whether a request is taken.
type Part struct {
	// Name is shown to everybody who can reach the server, like the text of
	// what Ready returns.
	Name string
	// Ready returns nil, or why the part takes nothing now. It is called for
	// every request of /readyz and must not block.
	Ready func() error
	// Optional parts do not keep the service from being ready: what needs them
	// waits, and all else goes on. They are shown with "verbose".
	Optional bool
}

// Build says how the program was built: its version, its commit and the version of
// Go. Everybody who can reach the server may see it.
type Build struct {
	Version, Commit, Go string
}

func (b Build) append(dst []byte) []byte {
	dst = append(dst, `,"build":{"version":`...)
	dst = data.AppendString(dst, b.Version)
	dst = append(dst, `,"commit":`...)
	dst = data.AppendString(dst, b.Commit)
	dst = append(dst, `,"go":`...)
	dst = data.AppendString(dst, b.Go)
	return append(dst, '}')
}

// answerLive answers GET /livez: always 200. A restart would not repair what is broken
// outside the process.
func answerLive(x *exchange) error {
	x.out = append(x.out, `{"status":"ok"}`...)
	x.send(http.StatusOK)
	return nil
}

// answerReady answers GET /readyz: 200 when requests are taken, otherwise 503
// with the first reason. "verbose" in the query adds all parts, the build, and the nodes of a
// cluster.
func answerReady(x *exchange) error {
	parts := x.server.readiness()
	status, reason := http.StatusOK, ""
	for _, part := range parts {
		if part.reason != "" && !part.optional {
			status, reason = http.StatusServiceUnavailable, part.name+": "+part.reason
			break
		}
	}
	if status == http.StatusOK {
		x.out = append(x.out, `{"status":"ready"`...)
	} else {
		f := mappingOf(failure.ErrUnavailable)
		setErrorHeaders(x.w.Header(), f)
		x.out = f.appendBody(x.out, groupWorkflow, parse.Clip(reason))
		x.out = x.out[:len(x.out)-1] // the brace; more may follow
	}
	if x.r.URL.Query().Has("verbose") {
		if b := x.server.options.Build; b != (Build{}) {
			x.out = b.append(x.out)
		}
		x.out = appendParts(x.out, parts)
		if services := x.server.services.Load(); services != nil && services.Cluster != nil {
			text, err := json.Marshal(services.Cluster())
			if err != nil {
				return err
			}
			x.out = append(append(x.out, `,"cluster":`...), text...)
		}
	}
	x.out = append(x.out, '}')
	x.send(status)
	return nil
}

func appendParts(dst []byte, parts []partState) []byte {
	dst = append(dst, `,"parts":[`...)
	for i, part := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = data.AppendString(dst, part.name)
		if part.reason == "" {
			dst = append(dst, `,"ready":true}`...)
			continue
		}
		dst = append(dst, `,"ready":false,"reason":`...)
		dst = data.AppendString(dst, parse.Clip(part.reason))
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// partState is a part as it is now; an empty reason means ready.
type partState struct {
	name, reason string
	optional     bool
}

// readiness asks all parts. The server itself is the first.
func (s *Server) readiness() []partState {
	services := s.services.Load()
	self := partState{name: "gateway"}
	switch {
	case s.draining.Load():
		self.reason = "stopping"
	case services == nil:
		self.reason = "starting"
	}
	states := []partState{self}
	if services == nil {
		return states
	}
	for _, part := range services.Parts {
		state := partState{name: part.Name, optional: part.Optional}
		if err := part.Ready(); err != nil {
			state.reason = err.Error()
		}
		states = append(states, state)
	}
	return states
}
