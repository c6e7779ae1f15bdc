package buckettest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"
)

// AccessKey and SecretKey are the keys of the server's owner.
const (
	AccessKey = "troupe-test"
	SecretKey = "troupe-test-secret"
	region    = "us-east-1"
)

// Server is a running server.
type Server struct {
	Endpoint string // its address

	t      testing.TB
	client *minio.Client
	stop   func()
	access access
}

// Stop ends the server before the test does.
func (s *Server) Stop() { s.stop() }

func (s *Server) connect() {
	s.t.Helper()
	transport, err := minio.DefaultTransport(false)
	require.NoError(s.t, err)
	s.t.Cleanup(transport.CloseIdleConnections)
	s.client, err = minio.New(strings.TrimPrefix(s.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: region, Transport: transport,
	})
	require.NoError(s.t, err)
}

// Bucket makes an empty bucket, unless there is one of that name.
func (s *Server) Bucket(name string) *Bucket {
	s.t.Helper()
	err := s.client.MakeBucket(context.Background(), name, minio.MakeBucketOptions{})
	if minio.ToErrorResponse(err).Code != minio.BucketAlreadyOwnedByYou {
		require.NoError(s.t, err, "make bucket %s", name)
	}
	return &Bucket{Name: name, server: s, client: s.client}
}

// Bucket is the editor of a bucket: a sourcetest.Editor.
type Bucket struct {
	Name   string
	Prefix string // Prefix stands before each key, with a slash at its end
	server *Server
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

// Open lets everybody list the bucket and read what is in a folder.
func (b *Bucket) Open(folder string) error { return b.server.access.open(b, b.key(folder)+"/") }
