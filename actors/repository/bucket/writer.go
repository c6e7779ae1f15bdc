package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Writer makes objects behind the prefix of a bucket, by the rest of their keys.
type Writer struct {
	*Bucket
	guards bool // the store is known not to replace objects
}

// NewWriter returns who writes to a bucket.
func NewWriter(b *Bucket) *Writer { return &Writer{Bucket: b} }

func (w *Writer) String() string { return strings.TrimSuffix("s3://"+w.o.Bucket+"/"+w.o.Prefix, "/") }

// markName is the object with which Create finds out whether the store guards objects.
const markName = ".troupe"

var mark = []byte("troupe exports to this prefix\n")

// Create makes an object, as a whole or not at all; fs.ErrExist when there is one of that name. A store that would replace
// that all the same is refused.
func (w *Writer) Create(ctx context.Context, name string, text []byte) error {
	if !w.guards {
		err := w.put(ctx, markName, mark)
		if err == nil {
			err = w.put(ctx, markName, mark)
		}
		if err == nil {
			return fmt.Errorf("%s: the object store replaces objects in spite of If-None-Match, so files of two nodes could be lost: use another one", w)
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		w.guards = true
	}
	return w.put(ctx, name, text)
}

func (w *Writer) put(ctx context.Context, name string, text []byte) error {
	o := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true}
	o.SetMatchETagExcept("*")
	_, err := w.client.Client.PutObject(ctx, w.o.Bucket, w.o.Prefix+name, bytes.NewReader(text), int64(len(text)), o)
	if minio.ToErrorResponse(err).StatusCode == http.StatusPreconditionFailed {
		return fs.ErrExist
	}
	if err != nil {
		return fmt.Errorf("write %s/%s: %w", w, name, err)
	}
	return nil
}

// Names lists the names of the objects in a folder.
func (w *Writer) Names(ctx context.Context, folder string) (names []string, err error) {
	prefix := w.o.Prefix + folder + "/"
	for object := range w.objects(ctx, prefix, false) {
		if object.Err != nil {
			return nil, fmt.Errorf("list %s: %w", w, object.Err)
		}
		names = append(names, strings.TrimPrefix(object.Key, prefix))
	}
	return names, nil
}
