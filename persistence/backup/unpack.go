package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Backup is one that can be brought back.
type Backup interface {
	// Unpack writes the files that are wanted below a folder, durably, and returns the index. Everything is compared with
	// the index, what is not wanted too where it costs nothing. ErrDamaged.
	Unpack(ctx context.Context, dir string, wanted func(path string) bool, progress func(done, total int64)) (*Index, error)
	// Index is nil while it is not known; Bytes about how much Unpack writes.
	Index() *Index
	Bytes() int64
}

// Find returns the newest backup of a target that is not after a time; the zero time: the newest. ErrNoBackup.
func Find(ctx context.Context, t Target, at time.Time) (Backup, error) {
	names, err := t.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", t, err)
	}
	all := moments(names)
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %s has none", ErrNoBackup, t)
	}
	found := all[len(all)-1]
	if !at.IsZero() {
		first, _ := parseMoment(all[0])
		last, _ := parseMoment(found)
		if at.Before(first) || at.After(time.Now()) {
			return nil, fmt.Errorf("%w: %s is not kept: %s has backups from %s to %s", ErrNoBackup, shownTime(at), t, shownTime(first), shownTime(last))
		}
		for _, name := range all {
			if moment, _ := parseMoment(name); !moment.After(at) {
				found = name
			}
		}
	}
	index, err := readIndex(ctx, t, found)
	if err != nil {
		return nil, err
	}
	return &stored{t, index}, nil
}

// stored is a backup in a target.
type stored struct {
	of    Target
	index *Index
}

func (s *stored) Index() *Index { return s.index }
func (s *stored) Bytes() int64  { return s.index.Bytes() }

func (s *stored) Unpack(ctx context.Context, dir string, wanted func(string) bool, progress func(done, total int64)) (*Index, error) {
	var done int64
	for n := range s.index.Files {
		f := &s.index.Files[n]
		if !wanted(f.Path) {
			continue
		}
		err := place(dir, f, func(to io.Writer) error { return unpackFile(ctx, s.of, f, to) })
		if err != nil {
			return nil, err
		}
		done += f.Bytes
		progress(done, s.index.Bytes())
	}
	return s.index, syncTree(dir)
}

// unpackFile reads the content of a file from a target, and compares it.
func unpackFile(ctx context.Context, t Target, f *File, to io.Writer) error {
	content, err := t.Get(ctx, f.object())
	if errors.Is(err, fs.ErrNotExist) {
		return damagedf(f.Path, "%s is missing in %s", f.object(), t)
	}
	if err != nil {
		return fmt.Errorf("read %s in %s: %w", f.object(), t, err)
	}
	sum := newTally()
	_, err = io.Copy(io.MultiWriter(sum, to), &interruptible{ctx, content})
	if err = errors.Join(err, content.Close()); err != nil {
		return fmt.Errorf("read %s in %s: %w", f.object(), t, err)
	}
	if err := sum.check(f); err != nil {
		return fmt.Errorf("%w (%s in %s)", err, f.object(), t)
	}
	return nil
}

// interruptible ends reading with the context.
type interruptible struct {
	ctx context.Context //nolint:containedctx // of one call
	io.Reader
}

func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// place makes a file below a folder, durably.
func place(dir string, f *File, fill func(io.Writer) error) error {
	path := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(path), folderMode(f)); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = fill(file)
	return errors.Join(err, file.Chmod(f.Mode.Perm()), file.Sync(), file.Close())
}

// folderMode is that of the folder of a file: the store is for its user alone.
func folderMode(f *File) fs.FileMode {
	if f.isData() {
		return 0o700
	}
	return 0o755
}

// syncTree makes the entries of a folder and those below it durable.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncDir(path)
	})
}

// Everything and DataOnly say what is unpacked.
func Everything(string) bool { return true }

// DataOnly wants the store alone.
func DataOnly(path string) bool { return strings.HasPrefix(path, DataFolder+"/") }
