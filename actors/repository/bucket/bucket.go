package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/repository"
)

// Options configures a Bucket. Endpoint and Bucket are required.
type Options struct {
	Endpoint string // the address of the store, such as https://s3.eu-central-1.amazonaws.com
	// Region is where the bucket is. Empty: the store is asked.
	Region               string
	Bucket               string // its name
	Prefix               string // Prefix stands before the keys of all files, such as templates/; a slash at its end is added
	AccessKey, SecretKey string // AccessKey and SecretKey sign the requests
	MachineRole          bool   // MachineRole signs them with the role that AWS gives to this machine or container instead
	// FileBytesMax bounds the files that are opened; a larger one is failure.ErrTooLarge. Default 64 MiB.
	FileBytesMax int64
	// Poll is the pause between two looks of Watch. Default 30 s.
	Poll time.Duration
	// OpenMax bounds how long a file is open, reading included. Default 30 s.
	OpenMax time.Duration
	Log     zerolog.Logger
}

// EnsureDefaults fills in what is zero.
func (o *Options) EnsureDefaults() {
	o.FileBytesMax = cmp.Or(o.FileBytesMax, 64<<20)
	o.Poll = cmp.Or(o.Poll, 30*time.Second)
	o.OpenMax = cmp.Or(o.OpenMax, 30*time.Second)
}

const (
	keyBytesMax = 1024             // how long a key can be (Amazon S3, "Naming objects")
	attempts    = 3                // how often a request is made that fails in passing
	idleMax     = time.Minute      // how long a connection is kept that nobody uses
	answerMax   = 15 * time.Second // how long the store may take to begin an answer
	connectMax  = 5 * time.Second  // how long a connection may take
)

// Bucket is a bucket as a repository.Source.
type Bucket struct {
	o         Options
	client    minio.Core
	transport *http.Transport

	mu struct {
		sync.Mutex
		folders map[string]*listed // by path, as List has shown them
		round   int                // the number of the last look
	}
}

// Open makes a client; it connects to nothing. An error is a fault of the options. Close must be called.
func Open(o Options) (*Bucket, error) {
	o.EnsureDefaults()
	if o.Prefix != "" {
		o.Prefix = strings.TrimRight(o.Prefix, "/") + "/"
	}
	address, err := url.Parse(o.Endpoint)
	switch {
	case err != nil, address.Scheme != "http" && address.Scheme != "https", address.Host == "", address.User != nil,
		strings.Trim(address.Path, "/") != "", address.RawQuery != "", address.Fragment != "":
		return nil, errors.New("open bucket: the endpoint must be like https://s3.example.com")
	case strings.HasPrefix(o.Prefix, "/"):
		return nil, errors.New("open bucket: the prefix must not begin with a slash")
	case (o.AccessKey == "") != (o.SecretKey == ""):
		return nil, errors.New("open bucket: an access key and its secret key come together")
	case o.AccessKey != "" && o.MachineRole:
		return nil, errors.New("open bucket: there are keys and a machine role; one must go")
	}
	if err := s3utils.CheckValidBucketName(o.Bucket); err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	b := &Bucket{o: o}
	b.mu.folders = map[string]*listed{}
	if b.transport, err = minio.DefaultTransport(address.Scheme == "https"); err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	b.transport.DialContext = (&net.Dialer{Timeout: connectMax}).DialContext
	b.transport.ResponseHeaderTimeout, b.transport.IdleConnTimeout = answerMax, idleMax
	client, err := minio.NewCore(address.Host, &minio.Options{
		Creds: o.credentials(), Secure: address.Scheme == "https", Region: o.Region, Transport: b.transport, MaxRetries: attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	b.client = *client
	return b, nil
}

func (o *Options) credentials() *credentials.Credentials {
	if o.MachineRole {
		return credentials.NewIAM("")
	}
	return credentials.NewStaticV4(o.AccessKey, o.SecretKey, "") // anonymous without keys
}

// Close ends the connections that nobody uses. Files that are open stay so.
func (b *Bucket) Close() error {
	b.transport.CloseIdleConnections()
	return nil
}

// key returns the key of a file, or the prefix of a folder without its last slash. ok: an object can have it.
func (b *Bucket) key(path string) (key string, ok bool) {
	if !repository.IsPath(path) {
		return "", false
	}
	key = b.o.Prefix + path[1:]
	return key, len(key) <= keyBytesMax
}

// isObject reports whether the client can ask for a key. It cannot for one that has only blanks.
func isObject(key string) bool { return s3utils.CheckValidObjectName(key) == nil }

// List implements repository.Source. A bucket that is missing or may not be listed is failure.ErrUnavailable, so that a
// wrong setting does not look like an empty repository.
func (b *Bucket) List(ctx context.Context, folder string) (*repository.Listing, error) {
	prefix, ok := b.key(folder)
	if !ok {
		return nil, fs.ErrNotExist
	}
	if folder != "/" {
		prefix += "/"
	}
	listing, found, sum := &repository.Listing{}, folder == "/", uint64(0)
	for object := range b.objects(ctx, prefix, false) {
		if object.Err != nil {
			return nil, failure.Errorf(failure.ErrUnavailable, "list %s: %w", b.o.Bucket, object.Err)
		}
		found = true
		name, isIn := strings.CutPrefix(object.Key, prefix)
		if !isIn || name == "" { // "" is the folder's own mark
			continue
		}
		name, isFolder := strings.CutSuffix(name, "/")
		switch {
		case !repository.IsName(name), !isFolder && !isObject(object.Key):
			listing.Left++
			continue
		case isFolder:
			listing.Folders = append(listing.Folders, name)
		default:
			listing.Files = append(listing.Files, name)
		}
		sum += sumOf(name, isFolder)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !found {
		delete(b.mu.folders, folder)
		return nil, fs.ErrNotExist
	}
	b.mu.folders[folder] = &listed{sum: sum, round: b.mu.round}
	return listing, nil
}

// Unless deep is set, the keys of one folder come as one key, up to its slash.
func (b *Bucket) objects(ctx context.Context, prefix string, deep bool) func(func(minio.ObjectInfo) bool) {
	return b.client.ListObjectsIter(ctx, b.o.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: deep})
}

// Open implements repository.Source. The file stays as it is when its object is replaced.
func (b *Bucket) Open(ctx context.Context, file string) (*repository.File, error) {
	key, ok := b.key(file)
	if !ok || !isObject(key) {
		return nil, fs.ErrNotExist
	}
	ctx, cancel := context.WithTimeout(ctx, b.o.OpenMax)
	body, info, _, err := b.client.GetObject(ctx, b.o.Bucket, key, minio.GetObjectOptions{})
	if err != nil {
		cancel()
		return nil, openFault(err)
	}
	c := &content{body: body, size: info.Size, cancel: cancel}
	switch {
	case info.Size < 0:
		err = failure.Errorf(failure.ErrUnavailable, "the store does not say how large the object is")
	case info.Size > b.o.FileBytesMax:
		err = repository.TooLarge(b.o.FileBytesMax)
	default:
		return repository.NewFile(c, repository.Identity{
			Path: file, Modified: info.LastModified.UnixNano(), Size: info.Size, Inode: sumOf(info.ETag+" "+info.VersionID, false),
		}), nil
	}
	_ = c.Close()
	return nil, err
}

func openFault(err error) error {
	switch minio.ToErrorResponse(err).Code { // NB: not by the status, which stores choose freely
	case minio.NoSuchKey, "KeyTooLongError":
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case minio.AccessDenied, "InvalidObjectState": // the second: it is in an archive
		return fmt.Errorf("%w: %w", fs.ErrPermission, err)
	}
	return failure.Errorf(failure.ErrUnavailable, "%w", err)
}
