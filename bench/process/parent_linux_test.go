package process

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// The commands of this test binary: a program that starts a server, says where it is and stays, and that server.
const (
	parentCommand = "parent"
	serverCommand = "server"
)

func TestMain(m *testing.M) {
	command := ""
	if len(os.Args) > 2 {
		command = os.Args[1]
	}
	var err error
	switch command {
	case parentCommand:
		err = parentMain(os.Args[2])
	case serverCommand:
		err = serverMain(os.Args[len(os.Args)-1])
	default:
		goleak.VerifyTestMain(m)
	}
	fmt.Fprintln(os.Stderr, err)
}

func parentMain(log string) error {
	p, err := Start(context.Background(), log, os.Args[0], serverCommand)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, p.Addr, p.PID())
	_, err = os.Stdin.Read(make([]byte, 1)) // nobody writes
	return err
}

func serverMain(addr string) error {
	server := &http.Server{Addr: addr, ReadHeaderTimeout: time.Hour, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	return server.ListenAndServe()
}

// TestNoServerIsLeftBehindByAProgramThatIsKilled holds a connection to the server, which ends when that does.
func TestNoServerIsLeftBehindByAProgramThatIsKilled(t *testing.T) {
	parent := exec.CommandContext(t.Context(), os.Args[0], parentCommand, filepath.Join(t.TempDir(), "log"))
	stdin, err := parent.StdinPipe()
	require.NoError(t, err)
	defer func() { _ = stdin.Close() }()
	stdout, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	var addr string
	var pid int
	_, err = fmt.Fscan(stdout, &addr, &pid)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait() // it was killed
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(2*time.Minute)))
	if _, err := conn.Read(make([]byte, 1)); os.IsTimeout(err) {
		t.Errorf("the server is still there: %v, %v", err, syscall.Kill(pid, syscall.SIGKILL))
	}
}
