package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Objects are those of a bucket behind a prefix, by the rest of their keys: what a backup is kept in.
type Objects struct{ *Bucket }

// OpenObjects is Open for who also writes.
func OpenObjects(o Options) (*Objects, error) {
	b, err := Open(o)
	if err != nil {
		return nil, err
	}
	return &Objects{b}, nil
}

func (o *Objects) String() string { return "s3://" + o.o.Bucket + "/" + o.o.Prefix }

// List returns the sizes of all objects by their names.
func (o *Objects) List(ctx context.Context) (map[string]int64, error) {
	names := map[string]int64{}
	for object := range o.objects(ctx, o.o.Prefix, true) {
		if object.Err != nil {
			return nil, object.Err
		}
		if name, ok := strings.CutPrefix(object.Key, o.o.Prefix); ok && name != "" {
			names[name] = object.Size
		}
	}
	return names, nil
}

// Get returns the content of an object; without one fs.ErrNotExist, wrapped.
func (o *Objects) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	content, _, _, err := o.client.GetObject(ctx, o.o.Bucket, o.o.Prefix+name, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return content, err
}

// Put makes an object, as a whole or not at all.
func (o *Objects) Put(ctx context.Context, name string, size int64, content io.Reader) error {
	_, err := o.client.Client.PutObject(ctx, o.o.Bucket, o.o.Prefix+name, content, size, minio.PutObjectOptions{ContentType: "application/octet-stream"})
	return err
}

// Remove removes an object; one that is not there is removed already.
func (o *Objects) Remove(ctx context.Context, name string) error {
	return o.client.RemoveObject(ctx, o.o.Bucket, o.o.Prefix+name, minio.RemoveObjectOptions{})
}

// Lock removes what killed uploads have left. NB: object stores have no locks: each prefix is for one server.
func (o *Objects) Lock(ctx context.Context) (release func(), err error) {
	var faults []error
	for left := range o.client.ListIncompleteUploads(ctx, o.o.Bucket, o.o.Prefix, true) {
		if minio.ToErrorResponse(left.Err).Code == minio.NoSuchUpload { // what some stores say of none
			continue
		}
		if left.Err != nil {
			faults = append(faults, left.Err)
			continue
		}
		faults = append(faults, o.client.Client.RemoveIncompleteUpload(ctx, o.o.Bucket, left.Key))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	return func() {}, nil
}
