package buckettest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
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

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// AccessKey and SecretKey are the keys of the server's owner.
const (
	AccessKey = "troupe-test"
	SecretKey = "troupe-test-secret"
	region    = "us-east-1"
)

// Server is a running server.
type Server struct {
	// Endpoint is its address.
	Endpoint string

	t      testing.TB
	client *minio.Client
	stop   func()
}

// Start runs a server until the end of the test. Without a network the first time
// the test is skipped.
func Start(t testing.TB) *Server {
	t.Helper()
	program := build(t)
	dir := t.TempDir()
	for _, sub := range []string{"files", "notes"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 { // somebody else may take the port in between
		address, health := freeAddress(t), "/health-"+rand.Text() // which only this server has
		var log bytes.Buffer
		cmd := exec.Command(program, "--port", address, "--access", AccessKey, "--secret", SecretKey, "--region", region,
			"--health", health, "--quiet", "posix", "--sidecar", filepath.Join(dir, "notes"), filepath.Join(dir, "files"))
		cmd.Stdout, cmd.Stderr = &log, &log
		if err := cmd.Start(); err != nil {
			t.Fatalf("start the object store: %v", err)
		}
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

// Stop ends the server before the test does.
func (s *Server) Stop() { s.stop() }

// build returns the path of the server's program.
func build(t testing.TB) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(here), "server")
	if out, err := goCommand(t, module, "mod", "download"); err != nil {
		t.Skipf("the object store cannot be fetched: %v\n%s", err, out)
	}
	out, err := goCommand(t, module, "tool", "-n", "versitygw")
	if err != nil {
		t.Fatalf("build the object store: %v\n%s", err, out)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// answers waits until the server does.
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

func (s *Server) connect() {
	s.t.Helper()
	transport, err := minio.DefaultTransport(false)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(transport.CloseIdleConnections)
	s.client, err = minio.New(strings.TrimPrefix(s.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: region, Transport: transport,
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// Bucket makes an empty bucket, unless there is one of that name.
func (s *Server) Bucket(name string) *Bucket {
	s.t.Helper()
	err := s.client.MakeBucket(context.Background(), name, minio.MakeBucketOptions{})
	if refusal := minio.ToErrorResponse(err); err != nil && refusal.Code != minio.BucketAlreadyOwnedByYou {
		s.t.Fatalf("make bucket %s: %v", name, err)
	}
	return &Bucket{Name: name, client: s.client}
}

// Bucket is the editor of a bucket: a sourcetest.Editor.
type Bucket struct {
	Name string
	// Prefix stands before each key, with a slash at its end.
	Prefix string
	client *minio.Client
}

func (b *Bucket) key(path string) string { return b.Prefix + strings.TrimPrefix(path, "/") }

// Put writes an object.
func (b *Bucket) Put(file, text string) error { return b.PutKey(b.key(file), text) }

// PutKey writes an object whose key need not be a path.
func (b *Bucket) PutKey(key, text string) error {
	_, err := b.client.PutObject(context.Background(), b.Name, key, strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{})
	return err
}

// Remove removes an object, or all of a folder.
func (b *Bucket) Remove(path string) error {
	return b.each(path, func(key string) error {
		return b.client.RemoveObject(context.Background(), b.Name, key, minio.RemoveObjectOptions{})
	})
}

// Rename gives an object, or all of a folder, another path.
func (b *Bucket) Rename(from, to string) error {
	return b.each(from, func(key string) error {
		_, err := b.client.CopyObject(context.Background(),
			minio.CopyDestOptions{Bucket: b.Name, Object: b.key(to) + strings.TrimPrefix(key, b.key(from))},
			minio.CopySrcOptions{Bucket: b.Name, Object: key})
		if err != nil {
			return err
		}
		return b.client.RemoveObject(context.Background(), b.Name, key, minio.RemoveObjectOptions{})
	})
}

// each calls do with the key of a file, or of everything in a folder.
func (b *Bucket) each(path string, do func(key string) error) error {
	var keys []string
	for object := range b.client.ListObjectsIter(context.Background(), b.Name, minio.ListObjectsOptions{Prefix: b.key(path), Recursive: true}) {
		if object.Err != nil {
			return object.Err
		}
		if object.Key == b.key(path) || strings.HasPrefix(object.Key, b.key(path)+"/") {
			keys = append(keys, object.Key)
		}
	}
	if len(keys) == 0 {
		return fmt.Errorf("nothing is at %s", path)
	}
	var faults []error
	for _, key := range keys {
		faults = append(faults, do(key))
	}
	return errors.Join(faults...)
}

// SetPolicy says who else may do what (Amazon S3, "Bucket policies").
func (b *Bucket) SetPolicy(policy string) error {
	return b.client.SetBucketPolicy(context.Background(), b.Name, policy)
}
