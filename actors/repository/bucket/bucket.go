// Package bucket is a repository.Source over a bucket of an S3-compatible object store, read-only. The key of an
// object, behind a prefix, is the path of a file; the parts before its slashes are folders, which exist as long as
// something is in them. An object store tells of no changes, so Watch polls: it goes through all keys, a thousand a
// request, and compares each folder with what List last showed of it. When the store cannot be reached, refuses the
// keys or has no such bucket, the error is failure.ErrUnavailable.
package bucket

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
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

const drainBytesMax = 64 << 10

// The first use reads all of it into memory, because readers of zip files jump about.
type content struct {
	body   io.ReadCloser
	size   int64
	cancel context.CancelFunc // ends the request

	once sync.Once
	text *bytes.Reader
	err  error
}

func (c *content) ReadAt(p []byte, off int64) (int, error) {
	c.once.Do(c.load)
	if c.err != nil {
		return 0, c.err
	}
	return c.text.ReadAt(p, off)
}

// NB: it does not wrap the errors of the connection: one of them is io.EOF, which would look like the end of the
// object.
func (c *content) load() {
	text := make([]byte, c.size)
	if _, err := io.ReadFull(c.body, text); err != nil {
		c.err = failure.Errorf(failure.ErrUnavailable, "read an object: %s", err.Error())
		return
	}
	c.text = bytes.NewReader(text)
}

func (c *content) Close() error {
	c.once.Do(func() {
		c.err = fs.ErrClosed
		if c.size <= drainBytesMax {
			_, _ = io.Copy(io.Discard, c.body) // if it fails, the connection is not used again
		}
	})
	c.cancel()
	return c.body.Close()
}

// lookShare bounds the looks of Watch: the pause between two is that many times as long as one.
const lookShare = 20

// pauseAfter goes by the quicker one of the last two looks: one alone may have waited for something that has passed.
func pauseAfter(poll, took, before time.Duration) time.Duration {
	return max(poll, lookShare*min(took, before))
}

type listed struct {
	sum   uint64 // that of its names
	round int    // the number of the newest look before List showed it, or that has met it
}

var seed = maphash.MakeSeed()

// sumOf is what one name adds to the sum of its folder. The same names in another order have the same sum.
func sumOf(name string, isFolder bool) uint64 {
	type entry struct {
		name     string
		isFolder bool
	}
	return maphash.Comparable(seed, entry{name, isFolder})
}

// Watch implements repository.Source: it looks at all keys now and then, and tells of each folder that differs from
// what List has shown, until List shows it again.
func (b *Bucket) Watch(ctx context.Context, changed func(repository.Change)) error {
	pause, failed, before := b.o.Poll, false, time.Duration(0)
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		begun := time.Now()
		err := b.look(ctx, changed)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failed:
			b.o.Log.Warn().Err(err).Str("bucket", b.o.Bucket).Msg("the bucket cannot be looked at; its changes are not seen")
		case err == nil && failed:
			b.o.Log.Info().Str("bucket", b.o.Bucket).Msg("the bucket is looked at again")
		}
		failed = err != nil
		took := time.Since(begun)
		pause, before = pauseAfter(b.o.Poll, took, before), took
	}
}

// Keys come in ascending order, so that those of a folder and below it come together. A store with another order only
// makes it tell of folders that have not changed.
func (b *Bucket) look(ctx context.Context, changed func(repository.Change)) error {
	b.mu.Lock()
	b.mu.round++
	w := &walk{bucket: b, changed: changed, round: b.mu.round, open: []opened{{path: "/"}}}
	b.mu.Unlock()
	for object := range b.objects(ctx, b.o.Prefix, true) {
		if object.Err != nil {
			return object.Err
		}
		if key, ok := strings.CutPrefix(object.Key, b.o.Prefix); ok && isObject(object.Key) {
			w.meet(key)
		}
	}
	w.leave(0)
	w.forget()
	return nil
}

type walk struct {
	bucket  *Bucket
	changed func(repository.Change)
	round   int
	open    []opened // the folders on the way to the last key, the bucket first
}

type opened struct {
	name, path string
	sum        uint64
}

// Like List it leaves out a part that is not a name, with everything behind it.
func (w *walk) meet(key string) {
	depth := 0
	for {
		name, behind, isFolder := strings.Cut(key, "/")
		if !isFolder {
			break
		}
		if !repository.IsName(name) {
			return
		}
		depth++
		if depth == len(w.open) || w.open[depth].name != name {
			w.leave(depth)
			above := &w.open[depth-1]
			above.sum += sumOf(name, true)
			w.open = append(w.open, opened{name: name, path: strings.TrimSuffix(above.path, "/") + "/" + name})
		}
		key = behind
	}
	w.leave(depth + 1)
	if repository.IsName(key) { // a folder's own mark has no name
		w.open[depth].sum += sumOf(key, false)
	}
}

func (w *walk) leave(depth int) {
	for len(w.open) > depth {
		last := w.open[len(w.open)-1]
		w.open = w.open[:len(w.open)-1]
		if w.bucket.differs(last.path, last.sum, w.round) {
			w.changed(repository.Change{Folder: last.path})
		}
	}
}

func (b *Bucket) differs(folder string, sum uint64, round int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.mu.folders[folder]
	if known == nil {
		return false // it was never listed, or the folder above it is told
	}
	known.round = round
	return known.sum != sum
}

// forget drops the folders that the walk did not meet: they have gone, and the folder above was told.
func (w *walk) forget() {
	w.bucket.mu.Lock()
	defer w.bucket.mu.Unlock()
	for folder, known := range w.bucket.mu.folders {
		if known.round < w.round {
			delete(w.bucket.mu.folders, folder)
		}
	}
}
