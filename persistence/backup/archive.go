package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"troupe/persistence/folder"
)

// An archive, a tar.zst, has the index first and then the content of each file, in the order of the index: so it is
// written and read from its beginning to its end.
const archiveIndex = "troupe-backup.json"

// ToFile writes a backup into a new file, checks it, and gives it its name then.
func (r *Run) ToFile(ctx context.Context, path string) (*Report, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s: %w: choose another name, or move it away", path, fs.ErrExist)
	}
	part, err := createPart(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(part.Name()) }() // it has its name now, or is not wanted
	defer func() { _ = part.Close() }()           // written and synced before
	c, err := r.capture(ctx)
	if err != nil {
		return nil, err
	}
	defer c.done()
	index, err := c.archive(ctx, r, part)
	if err == nil {
		err = check(ctx, part.Name())
	}
	if err == nil {
		err = os.Link(part.Name(), path) // NB: not a rename, which would replace a file
	}
	if err == nil {
		err = folder.Sync(filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("backup to %s: %w", path, c.explain(err))
	}
	written, err := part.Stat()
	if err != nil {
		return nil, err
	}
	return &Report{Index: index, Copied: written.Size(), Left: c.left}, nil
}

// createPart makes the temporary file of an archive, mode 0600, and removes those that killed runs left: nobody has them
// locked.
func createPart(path string) (*os.File, error) {
	dir, pattern := filepath.Dir(path), "."+filepath.Base(path)+".*"+partSuffix
	left, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		if f, err := Lock(name); err == nil { // else it is somebody else's, or gone
			if err := errors.Join(os.Remove(name), f.Close()); err != nil {
				return nil, err
			}
		}
	}
	f, err := os.CreateTemp(dir, pattern)
	if err == nil {
		err = lock(f)
	}
	return f, err
}

// Lock opens a file or folder and locks it until it is closed, or the process ends. ErrBusy.
func Lock(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s: %w", f.Name(), ErrBusy)
	}
	return err
}

func (c *captured) archive(ctx context.Context, r *Run, to *os.File) (*Index, error) {
	index, err := c.index(r, nil)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	text, err := index.encode()
	if err == nil {
		err = addEntry(w, archiveIndex, int64(len(text)), bytes.NewReader(text))
	}
	progress := r.progress(index)
	for n := range c.files {
		if err != nil {
			return nil, err
		}
		f := &c.files[n]
		err = f.read(ctx, func(content io.Reader) error { return addEntry(w, f.object(), f.Bytes, content) })
		progress(&f.File)
	}
	return index, errors.Join(err, w.Close(), z.Close(), to.Sync())
}

func addEntry(w *tar.Writer, name string, size int64, content io.Reader) error {
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size})
	if err == nil {
		_, err = io.CopyN(w, content, size)
	}
	return err
}

// check reads a whole archive.
func check(ctx context.Context, path string) error {
	b, err := OpenFile(path)
	if err != nil {
		return err
	}
	return b.each(ctx, drain)
}

// OpenFile returns the backup in a file.
func OpenFile(path string) (*Backup, error) {
	a := &archive{path: path}
	defer a.close()
	index, err := a.begin()
	return &Backup{Index: index, from: a}, err
}

// archive is a file that is read from its beginning to its end. It is the source of a backup.
type archive struct {
	path  string
	file  *os.File // nil: it is not open
	plain *zstd.Decoder
	*tar.Reader
}

// close implements source.
func (a *archive) close() {
	if a.plain != nil {
		a.plain.Close()
	}
	if a.file != nil {
		_ = a.file.Close() // it was only read
	}
	a.file, a.plain = nil, nil
}

// begin opens the file and reads the index.
func (a *archive) begin() (_ *Index, err error) {
	if a.file, err = os.Open(a.path); err != nil {
		return nil, err
	}
	if a.plain, err = zstd.NewReader(a.file, zstd.WithDecoderConcurrency(1)); err != nil {
		return nil, err
	}
	a.Reader = tar.NewReader(a.plain)
	header, err := a.Next()
	if err != nil || header.Name != archiveIndex {
		return nil, fmt.Errorf("%w: %s is not a backup, or its beginning is damaged", ErrNoBackup, a.path)
	}
	return parseIndex(archiveIndex+" in "+a.path, faulty{a, archiveIndex})
}

// fault is the error of a read: damage, if it is not the file system's.
func (a *archive) fault(entry string, err error) error {
	if outside := (*fs.PathError)(nil); errors.As(err, &outside) || errors.Is(err, context.Canceled) {
		return err
	}
	at, _ := a.file.Seek(0, io.SeekCurrent)
	return damagedf(a.path, "in %s, before byte %d: %v", entry, at, err)
}

// get implements source: names are asked for in the order in which they were written, and again from the beginning when
// the first one is.
func (a *archive) get(_ context.Context, f *File) (io.ReadCloser, error) {
	for {
		header, err := a.Next()
		if err != nil {
			return nil, a.fault(f.Path, err)
		}
		if header.Name == f.object() {
			return io.NopCloser(faulty{a, f.Path}), nil
		}
	}
}

// faulty is the content of the present entry.
type faulty struct {
	of   *archive
	name string
}

func (r faulty) Read(p []byte) (int, error) {
	n, err := r.of.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.of.fault(r.name, err)
	}
	return n, err
}

func (a *archive) origin(*File) string { return a.path }

// start implements source.
func (a *archive) start() error {
	_, err := a.begin()
	return err
}

// end implements source: behind the last file there is nothing, and the checksum of the stream is right.
func (a *archive) end() error {
	if _, err := a.Next(); !errors.Is(err, io.EOF) {
		return damagedf(a.path, "it goes on after its last file")
	}
	more, err := io.Copy(io.Discard, a.plain)
	if err == nil && more > 0 { // such as a second archive
		return damagedf(a.path, "it goes on after its last file")
	}
	if err != nil {
		return a.fault("its end", err)
	}
	return nil
}
