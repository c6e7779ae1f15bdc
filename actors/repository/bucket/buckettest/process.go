//go:build versitygw

package buckettest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type access struct{}

// open sets a policy (Amazon S3, "Bucket policies").
func (access) open(b *Bucket, prefix string) error {
	return b.client.SetBucketPolicy(context.Background(), b.Name, fmt.Sprintf(`{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":"*","Action":["s3:GetObject"],"Resource":["arn:aws:s3:::%[1]s/%[2]s*"]},
		{"Effect":"Allow","Principal":"*","Action":["s3:ListBucket"],"Resource":["arn:aws:s3:::%[1]s"]}]}`, b.Name, prefix))
}

// Start runs a server until the end of the test. Without a network the first time the test is skipped.
func Start(t testing.TB) *Server {
	t.Helper()
	program := build(t)
	dir := t.TempDir()
	for _, sub := range []string{"files", "notes"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	for range 5 { // somebody else may take the port in between
		address, health := freeAddress(t), "/health-"+rand.Text() // which only this server has
		var log bytes.Buffer
		cmd := exec.Command(program, "--port", address, "--access", AccessKey, "--secret", SecretKey, "--region", region,
			"--health", health, "--quiet", "posix", "--sidecar", filepath.Join(dir, "notes"), filepath.Join(dir, "files"))
		cmd.Stdout, cmd.Stderr = &log, &log
		require.NoError(t, cmd.Start(), "start the object store")
		exited := make(chan struct{})
		go func() { _ = cmd.Wait(); close(exited) }()
		s := &Server{Endpoint: "http://" + address, t: t}
		s.stop = func() { _ = cmd.Process.Kill(); <-exited }
		t.Cleanup(s.stop)
		if s.answers(health, exited) {
			s.connect()
			return s
		}
		s.stop()
		t.Logf("the object store does not answer at %s:\n%s", address, log.String())
	}
	t.Fatal("the object store does not start")
	return nil
}

func build(t testing.TB) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(here), "server")
	if out, err := goCommand(t, module, "mod", "download"); err != nil {
		t.Skipf("the object store cannot be fetched: %v\n%s", err, out)
	}
	out, err := goCommand(t, module, "tool", "-n", "versitygw")
	require.NoError(t, err, "build the object store: %s", out)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

func goCommand(t testing.TB, module string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"-C", module}, args...)...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (s *Server) answers(health string, exited <-chan struct{}) bool {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for {
		if response, err := client.Get(s.Endpoint + health); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-again.C:
		case <-exited:
			return false
		case <-late.C:
			return false
		}
	}
}
