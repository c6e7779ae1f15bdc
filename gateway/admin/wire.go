// Package admin is the unix socket of a home folder, what the command line asks of a running server, and the listener with
// metrics and profiles (operations.go).
//
//	troupe token create ─┐
//	troupe password set ─┴► Client ──► admin.sock ──► Server ──► identity
//
// The socket speaks small JSON over HTTP, one request for each connection. The socket's file mode is the only right that is checked:
// anyone who may open it may read the store as well. So it answers with the whole text of an error, and shows a secret
// once. A command whose Dial finds no server opens the store itself; when a call loses its server, the outcome is unknown.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"troupe/actors/export"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/statemachine/document"
)

// The messages of the socket. Both sides are the same program, but perhaps in
// different versions: unknown members are refused, and the path has a version.
//
//	POST   /v1/{token,session}        createRequest    → createReply
//	GET    /v1/{token,session}                         → credentialList
//	DELETE /v1/{token,session}/{id}                    → emptyReply
//	PUT    /v1/password               passwordRequest  → emptyReply
//	GET    /v1/faults                                  → faultList
//	PUT    /v1/home[?dryRun=true]     a tar archive    → publishReply
//	GET    /v1/actors                                  → actors.Branch
//	POST   /v1/checkpoint                              → checkpointReply, then nothing until the command goes
//	POST   /v1/store/{tool}           what it reads    → toolMessage, one a line
//	GET    /v1/exports                                 → exportList
//	GET    /v1/cluster                                 → cluster.Status
//	POST   /v1/cluster/invite         inviteRequest    → inviteReply
//	DELETE /v1/cluster/nodes/{id}[?lost=true]          → emptyReply
const (
	pathToken    = "/v1/token"
	pathSession  = "/v1/session"
	pathPassword = "/v1/password"
	pathFaults   = "/v1/faults"
	pathHome     = "/v1/home"
	pathActors   = "/v1/actors"
	pathMoment   = "/v1/checkpoint"
	pathTools    = "/v1/store"
	pathExports  = "/v1/exports"
	pathCluster  = "/v1/cluster"
	pathInvite   = pathCluster + "/invite"
	pathNodes    = pathCluster + "/nodes"
)

type createRequest struct {
	User    string `json:"user"`
	Expires string `json:"expires,omitempty"` // as time.Duration writes it
	Note    string `json:"note,omitempty"`
}

type passwordRequest struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// createReply and passwordRequest are the only messages with a secret.
type createReply struct {
	Secret     string              `json:"secret"`
	Credential identity.Credential `json:"credential"`
}

type credentialList struct {
	Credentials []identity.Credential `json:"credentials"`
}

// faultList has the faults for which the server would refuse the definitions in its
// home now, and what else it says of them.
type faultList struct {
	Faults   []api.FileFault `json:"faults"`
	Warnings []api.FileFault `json:"warnings,omitempty"`
}

type publishReply struct {
	api.PublishedHome
	Faults []api.FileFault `json:"faults,omitempty"`
}

func faultsToWire(faults document.Faults) []api.FileFault {
	wire := make([]api.FileFault, 0, len(faults))
	for _, f := range faults {
		wire = append(wire, api.FileFault(f))
	}
	return wire
}

func faultsFromWire(wire []api.FileFault) (faults document.Faults) {
	for _, f := range wire {
		faults = append(faults, document.Fault(f))
	}
	return faults
}

type exportList struct {
	Exports []export.Status `json:"exports"`
}

type emptyReply struct{}

// checkpointReply names a folder below that of the store. It is there as long as the connection is.
type checkpointReply struct {
	Folder string `json:"folder"`
}

// errorReply is the body of every status but 200: a label of errorMappings, and the text of the server's error.
type errorReply struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// parse checks a request. The identity service checks whether there is such a user.
func (c createRequest) parse() (identity.CreateCredential, error) {
	var expires time.Duration
	var err error
	if c.Expires != "" {
		if expires, err = time.ParseDuration(c.Expires); err != nil {
			return identity.CreateCredential{}, errors.Join(ErrUnknownRequest, err)
		}
	}
	if c.User == "" {
		return identity.CreateCredential{}, fmt.Errorf("%w: the user is missing", ErrUnknownRequest)
	}
	return identity.CreateCredential{User: identity.UserID(c.User), Expires: expires, Note: c.Note}, nil
}

// pathOf returns the path of the credentials of a kind.
func pathOf(kind identity.Kind) string {
	if kind == identity.Session {
		return pathSession
	}
	return pathToken
}

type inviteRequest struct {
	Expires time.Duration `json:"expires"` // nanoseconds
}

type inviteReply struct {
	Key string `json:"key"`
}

var (
	// ErrNoServer is what Dial and the calls of a Client answer when nobody
	// listens at the socket. Nothing was done; the caller may open the store itself.
	ErrNoServer = errors.New("no server is running there")
	// ErrInUse is what Start answers when a server listens at the socket
	// already. The caller should not start a second one.
	ErrInUse = errors.New("a server is running there already")
	// ErrNotSocket is what Start answers when the socket's path exists and is not a socket. A person has to look at it.
	ErrNotSocket = errors.New("the path exists and is not a socket")
	// ErrUnknownRequest is wrapped by what a Client answers when the server does not
	// know the request, because the two are of different versions.
	ErrUnknownRequest = errors.New("the server does not know this request")
	// ErrFailed is wrapped by what a Client answers when the server had an error
	// that is in no other row. The outcome is unknown.
	ErrFailed = errors.New("the server failed")
)

// errorMapping says how an error is sent: label names the cause on both sides.
type errorMapping struct {
	cause  error
	status int
	label  string
}

// errorMappings is never changed. Errors that are in no row are sent as the last one.
var errorMappings = []errorMapping{
	{failure.ErrNotFound, http.StatusNotFound, "NotFound"},
	{failure.ErrInvalid, http.StatusBadRequest, "Invalid"},
	{failure.ErrConflict, http.StatusConflict, "Conflict"},
	{failure.ErrNotAllowed, http.StatusConflict, "NotAllowed"},
	{failure.ErrForbidden, http.StatusForbidden, "Forbidden"},
	{failure.ErrBusy, http.StatusServiceUnavailable, "Busy"},
	{failure.ErrUnavailable, http.StatusServiceUnavailable, "Unavailable"},
	{failure.ErrNotLeader, http.StatusMisdirectedRequest, "Elsewhere"},
	{failure.ErrOutcomeUnknown, http.StatusGatewayTimeout, "OutcomeUnknown"},
	{ErrUnknownRequest, http.StatusBadRequest, "Request"},
	{ErrFailed, http.StatusInternalServerError, "Failed"},
}

func mappingOf(err error) errorMapping {
	for _, f := range errorMappings {
		if errors.Is(err, f.cause) {
			return f
		}
	}
	return errorMappings[len(errorMappings)-1]
}

func causeOf(label string) error {
	for _, f := range errorMappings {
		if f.label == label {
			return f.cause
		}
	}
	return ErrFailed
}

// socketPathMax is the longest path that every system takes for a socket; the
// smallest sun_path has 104 bytes with its NUL.
const socketPathMax = 103

// withShortPath calls use with a path to the same file that is short enough for a
// socket. The short path is valid only during the call.
func withShortPath(path string, use func(short string) error) error {
	if len(path) <= socketPathMax {
		return use(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if _, err := os.Stat(filepath.Dir(short)); err != nil || len(short) > socketPathMax {
		return fmt.Errorf("the path of the socket is longer than %d bytes, which this system does not take: %s", socketPathMax, path)
	}
	return use(short)
}

// connect opens a connection to the socket. It answers ErrNoServer when nobody listens.
func connect(ctx context.Context, path string) (net.Conn, error) {
	var c net.Conn
	err := withShortPath(path, func(short string) error {
		var dialer net.Dialer
		var err error
		c, err = dialer.DialContext(ctx, "unix", short)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	return c, err
}

// listen makes the socket, with mode 0600 from its first moment on.
func listen(path string) (net.Listener, error) {
	if err := clearStale(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		// NB: Linux makes the file with the mode of the unbound socket, so there is no moment at which others could
		// connect. Elsewhere this is refused and the mode is set below.
		return raw.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	var l net.Listener
	err := withShortPath(path, func(short string) error {
		var err error
		l, err = config.Listen(context.Background(), "unix", short)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it knows only the short path
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// clearStale removes the socket of a server that is gone, and nothing else.
func clearStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return ErrNotSocket
	}
	c, err := connect(context.Background(), path)
	if err == nil {
		_ = c.Close()
		return ErrInUse
	}
	if !errors.Is(err, ErrNoServer) {
		return err
	}
	return os.Remove(path)
}
