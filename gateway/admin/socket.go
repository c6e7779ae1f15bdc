package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

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
