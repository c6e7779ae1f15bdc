package leave

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// stopWaitMax is how long a server may take to end before it is killed.
const stopWaitMax = 8 * time.Second

// StartServer starts a server as a child process, which ends with this one, and returns what stops
// it: it sends an interrupt and returns when the server is gone. The caller makes the command
// with exec.Command and waits until the server is ready.
func StartServer(cmd *exec.Cmd) (stop func(), err error) {
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	endWithParent(cmd)
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// NB: for the kernel the parent is this thread, see endWithParent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		if err := cmd.Wait(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(cmd.Path), err)
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Signal(os.Interrupt) // an error means that it has gone
		select {
		case <-ended:
		case <-time.After(stopWaitMax):
			_ = cmd.Process.Kill()
			<-ended
		}
	}, nil
}

// Ready tries something until it works, for half a minute.
func Ready(ctx context.Context, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the peer's server is not ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Call sends a request and demands a status of 2xx.
func Call(ctx context.Context, method, url string, body io.Reader) error {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s\n%s", method, url, response.Status, text)
	}
	return err
}

// FreeAddr returns a loopback address that nobody listens on.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// Tool returns the one file that matches a pattern below bench/peers/server, whose place
// follows from that of this program, bench/peers/bin.
func Tool(pattern string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	pattern = filepath.Join(filepath.Dir(self), "..", "server", pattern)
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("there is no %s: README.md says how it gets there", pattern)
	}
	return found[0], nil
}
