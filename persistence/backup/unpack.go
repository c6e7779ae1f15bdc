package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"troupe/persistence/folder"
)

// Backup is one that can be brought back.
type Backup struct {
	*Index
	from source
}

// source has the contents of a backup's files: a target, or an archive, which has them in their order only.
type source interface {
	start() error
	get(ctx context.Context, f *File) (io.ReadCloser, error)
	end() error // after all files
	close()     // after start, also where that or what follows has failed
	origin(f *File) string
}

// Find returns the newest backup of a target that is not after a time; the zero time: the newest. ErrNoBackup.
func Find(ctx context.Context, t Target, at time.Time) (*Backup, error) {
	names, err := t.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", t, err)
	}
	all := moments(names)
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: there are no backups in %s", ErrNoBackup, t)
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
	if before := slices.Index(all, found) - 1; errors.Is(err, ErrDamaged) && before >= 0 {
		moment, _ := parseMoment(all[before])
		err = fmt.Errorf("%w; one before it can be had with --at %s", err, shownTime(moment.Add(time.Second-1)))
	}
	return &Backup{index, stored{t}}, err
}

// CheckAll reads all backups of a target, each content once, and compares them with their sums. It returns how many there
// are. ErrDamaged names the first backup that cannot be brought back.
func CheckAll(ctx context.Context, t Target) (backups int, err error) {
	names, err := t.List(ctx)
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", t, err)
	}
	right := map[string]bool{}
	for _, name := range moments(names) {
		index, err := readIndex(ctx, t, name)
		if err != nil {
			return 0, err
		}
		b := &Backup{index, stored{t}}
		for n := range b.Files {
			f := &b.Files[n]
			if right[f.SHA256] {
				continue
			}
			if err := b.visit(ctx, f, drain); err != nil {
				return 0, fmt.Errorf("the backup of %s: %w", shownTime(b.Moment), err)
			}
			right[f.SHA256] = true
		}
		backups++
	}
	return backups, nil
}

// stored is a target as the source of a backup.
type stored struct{ Target }

func (stored) start() error { return nil }
func (stored) end() error   { return nil }
func (stored) close()       {}

func (s stored) origin(f *File) string { return f.object() + " in " + s.String() }

func (s stored) get(ctx context.Context, f *File) (io.ReadCloser, error) {
	content, err := s.Get(ctx, f.object())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damagedf(f.Path, "%s is missing", s.origin(f))
	}
	return content, err
}

// each visits all files of a backup with their contents, which are compared with the index.
func (b *Backup) each(ctx context.Context, visit func(f *File, content io.Reader) error) error {
	defer b.from.close()
	if err := b.from.start(); err != nil {
		return err
	}
	for n := range b.Files {
		if err := b.visit(ctx, &b.Files[n], visit); err != nil {
			return err
		}
	}
	return b.from.end()
}

func (b *Backup) visit(ctx context.Context, f *File, visit func(*File, io.Reader) error) error {
	content, err := b.from.get(ctx, f)
	if err != nil {
		return err
	}
	t := newTally()
	err = visit(f, io.TeeReader(&interruptible{ctx, content}, t))
	if err = errors.Join(err, content.Close()); err != nil {
		return err
	}
	if err := t.check(f); err != nil {
		return fmt.Errorf("%w (%s)", err, b.from.origin(f))
	}
	return nil
}

// Unpack writes the files below a folder, durably, the store only if dataOnly. All of them are compared with the index.
// ErrDamaged.
func (b *Backup) Unpack(ctx context.Context, dir string, dataOnly bool, progress func(done, total int64)) error {
	var done int64
	err := b.each(ctx, func(f *File, content io.Reader) error {
		done += f.Bytes
		if progress != nil {
			progress(done, b.Bytes())
		}
		if !dataOnly || f.isData() {
			return create(dir, f, content)
		}
		return drain(f, content)
	})
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return folder.Sync(path)
	})
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

// create makes a file below a folder, durably.
func create(dir string, f *File, content io.Reader) error {
	path, mode := filepath.Join(dir, filepath.FromSlash(f.Path)), fs.FileMode(0o755)
	if f.isData() {
		mode = 0o700
	}
	if err := os.MkdirAll(filepath.Dir(path), mode); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Chmod(f.Mode.Perm()), file.Sync(), file.Close())
}
