package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

// The entries of an archive that are no files of the home: the first says what it is, the last is the index.
const (
	titleEntry = "troupe-backup"
	indexEntry = "troupe-backup.json"
	title      = "troupe backup, format 1\n"
)

// trailer begins the end of an archive, a frame that zstd skips: its number, its size, and 32 bytes, the SHA-256 of all
// bytes before it. That is how an archive that was cut off is known at once.
const (
	trailer      = "\x50\x2a\x4d\x18\x20\x00\x00\x00"
	trailerBytes = len(trailer) + sha256.Size
)

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
	raw := newTally()
	index, err := r.archive(ctx, c, io.MultiWriter(part, raw))
	if err == nil {
		_, err = part.Write(append([]byte(trailer), raw.Sum(nil)...))
	}
	if err == nil {
		err = part.Sync()
	}
	if err == nil {
		_, err = (&archive{path: part.Name()}).Unpack(ctx, "", nothing, func(int64, int64) {})
	}
	if err == nil {
		err = os.Link(part.Name(), path) // NB: not a rename, which would replace a file
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("backup to %s: %w", path, err)
	}
	return &Report{Index: index, Copied: index.Bytes(), Left: c.left}, nil
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
		f, err := os.Open(name)
		if err != nil {
			continue // somebody else's, or gone
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			err = os.Remove(name)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

func (r *Run) archive(ctx context.Context, c *captured, to io.Writer) (_ *Index, err error) {
	z, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	index := &Index{Format: format, Moment: c.moment, Program: r.Program, Counts: c.counts}
	if err := addEntry(w, titleEntry, []byte(title)); err != nil {
		return nil, err
	}
	var done, total int64
	for _, f := range c.files {
		total += f.Bytes
	}
	for n := range c.files {
		f := &c.files[n]
		if err := addFile(ctx, w, f); err != nil {
			return nil, err
		}
		index.Files = append(index.Files, f.File)
		if done += f.Bytes; r.Progress != nil {
			r.Progress(done, total)
		}
	}
	text, err := index.encode()
	if err == nil {
		err = addEntry(w, indexEntry, text)
	}
	if err != nil {
		return nil, err
	}
	return index, errors.Join(w.Close(), z.Close())
}

func addEntry(w *tar.Writer, name string, text []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}

func addFile(ctx context.Context, w *tar.Writer, f *capturedFile) error {
	if f.path == "" {
		f.Bytes = int64(len(f.text))
	}
	if err := w.WriteHeader(&tar.Header{Name: f.Path, Mode: int64(f.Mode), Size: f.Bytes}); err != nil {
		return err
	}
	content, err := f.open()
	if err != nil {
		return err
	}
	t := newTally()
	_, err = io.Copy(io.MultiWriter(t, w), &interruptible{ctx, content})
	f.SHA256 = t.sum()
	if errors.Is(err, tar.ErrWriteTooLong) || err == nil && t.bytes != f.Bytes {
		err = fmt.Errorf("%s has changed while it was copied: try again", f.Path)
	}
	return errors.Join(err, content.Close())
}

// OpenFile returns the backup in a file. It reads the beginning and the end only.
func OpenFile(path string) (Backup, error) {
	a := &archive{path: path}
	r, err := a.open()
	if err != nil {
		return nil, err
	}
	a.bytes = r.size
	return a, r.close()
}

// archive is a backup in a file.
type archive struct {
	path  string
	bytes int64 // of the file
	index *Index
}

func (a *archive) Index() *Index { return a.index }
func (a *archive) Bytes() int64  { return a.bytes }

// reading is an archive that is being read.
type reading struct {
	*tar.Reader
	path  string
	file  *os.File
	plain *zstd.Decoder
	raw   *tally // of the bytes so far
	size  int64  // of all bytes before the trailer
	sum   []byte // of them, as the trailer says
}

func (r *reading) close() error {
	if r.plain != nil {
		r.plain.Close()
	}
	return r.file.Close()
}

// fault is the error of a read: damage, if it is not the file system's.
func (r *reading) fault(entry string, err error) error {
	var outside *fs.PathError
	if errors.As(err, &outside) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return damagedf(r.path, "near byte %d, in %s: %v", r.raw.bytes, entry, err)
}

// open reads the title and the trailer.
func (a *archive) open() (_ *reading, err error) {
	f, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	r := &reading{path: a.path, file: f, raw: newTally()}
	if err := r.begin(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *reading) begin() error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	r.size = info.Size() - int64(trailerBytes)
	end := make([]byte, trailerBytes)
	if r.size > 0 {
		if _, err := r.file.ReadAt(end, r.size); err != nil {
			return err
		}
	}
	body := io.TeeReader(bufio.NewReaderSize(io.NewSectionReader(r.file, 0, max(r.size, 0)), 1<<20), r.raw)
	if r.plain, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1)); err != nil {
		return err
	}
	r.Reader = tar.NewReader(r.plain)
	var text []byte
	if header, err := r.Next(); err == nil && header.Name == titleEntry {
		text, _ = io.ReadAll(io.LimitReader(r, 1<<10))
	}
	whole := bytes.HasPrefix(end, []byte(trailer))
	switch {
	case string(text) != title && !whole:
		return fmt.Errorf("%w: %s is not a backup that this program reads", ErrNoBackup, r.path)
	case string(text) != title:
		return damagedf(r.path, "at its beginning")
	case !whole:
		return damagedf(r.path, "it is cut off, or its end was changed: it has %d bytes", info.Size())
	}
	r.sum = end[len(trailer):]
	return nil
}

func nothing(string) bool { return false }

// indexBytesMax bounds the index of an archive.
const indexBytesMax = 256 << 20

func (a *archive) Unpack(ctx context.Context, dir string, wanted func(string) bool, progress func(done, total int64)) (*Index, error) {
	r, err := a.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.close() }() // it was only read
	sums := map[string]*tally{}
	for {
		header, err := r.Next()
		if err != nil {
			return nil, r.fault("the next entry", err)
		}
		if header.Name == indexEntry {
			break
		}
		if !filepath.IsLocal(header.Name) || sums[header.Name] != nil {
			return nil, damagedf(a.path, "it has an entry %q that no home has", header.Name)
		}
		sum := newTally()
		copyTo := func(to io.Writer) error {
			if _, err := io.Copy(io.MultiWriter(sum, to), &interruptible{ctx, r}); err != nil {
				return r.fault(header.Name, err)
			}
			return nil
		}
		if wanted(header.Name) {
			err = place(dir, &File{Path: header.Name, Mode: fs.FileMode(header.Mode).Perm()}, copyTo) //nolint:gosec // permissions
		} else {
			err = copyTo(io.Discard)
		}
		if err != nil {
			return nil, err
		}
		sums[header.Name] = sum
		progress(r.raw.bytes, r.size)
	}
	if a.index, err = r.last(sums); err != nil {
		return nil, err
	}
	if dir == "" {
		return a.index, nil
	}
	return a.index, syncTree(dir)
}

// last reads the index, compares what came before it, and expects the end.
func (r *reading) last(sums map[string]*tally) (*Index, error) {
	text, err := io.ReadAll(io.LimitReader(r, indexBytesMax))
	if err != nil {
		return nil, r.fault(indexEntry, err)
	}
	index, err := parseIndex(r.path, text)
	if err != nil {
		return nil, err
	}
	for n := range index.Files {
		f := &index.Files[n]
		sum := sums[f.Path]
		if sum == nil {
			return nil, damagedf(r.path, "%s is missing", f.Path)
		}
		if err := sum.check(f); err != nil {
			return nil, fmt.Errorf("%w (in %s)", err, r.path)
		}
		delete(sums, f.Path)
	}
	for path := range sums {
		return nil, damagedf(r.path, "it has %s, which its index does not", path)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		return nil, damagedf(r.path, "it goes on after its index")
	}
	if _, err := io.Copy(io.Discard, r.plain); err != nil {
		return nil, r.fault("its end", err)
	}
	if r.raw.bytes != r.size || !bytes.Equal(r.raw.Sum(nil), r.sum) {
		return nil, damagedf(r.path, "its checksum does not fit")
	}
	return index, nil
}
