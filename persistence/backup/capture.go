package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"troupe/persistence"
)

// Run says what is backed up, and how.
type Run struct {
	Home string
	// Checkpoint makes a checkpoint of the home's store. done removes it.
	Checkpoint func(ctx context.Context) (dir string, done func(), err error)
	// Text replaces text files, as the checkpoint in store says: by path, the content, or nil to leave the file out. own are
	// those that the home has. If Text itself is nil, they are taken as they are.
	Text       func(store string, own []string) (map[string][]byte, error)
	Needs      string   // a text file that every home has; without it there is no backup. Empty: none
	Repository bool     // with the files in the folder repository of the home
	Without    []string // folders that do not belong to the home, such as targets of exports, by their paths
	Program    string   // the version of the program
	// CountMax bounds how long history entries are counted; when they are more, the index does not have their number.
	// Zero: there is no bound, and the whole store is verified before it is copied.
	CountMax time.Duration
	// Progress is told how many of how many bytes were looked at. Nil: nobody is.
	Progress func(done, total int64)
}

// Report says what a run has done.
type Report struct {
	Index   *Index
	Copied  int64    // bytes that the target did not have
	Left    []string // files that are too large for a text file of a home, and not in the backup
	Removed int      // backups that were older than they are kept
}

// captured is one moment of a home, until done is called.
type captured struct {
	moment time.Time
	dir    string // of the checkpoint
	done   func()
	files  []capturedFile
	counts Counts
	idSum  string // of the file with the store's id
	left   []string
}

// capturedFile is a file whose content is in memory or at a path. A table has no sum yet.
type capturedFile struct {
	File
	text []byte // nil: at path
	path string
}

func (f *capturedFile) open() (io.ReadCloser, error) {
	if f.path == "" {
		return io.NopCloser(bytes.NewReader(f.text)), nil
	}
	return os.Open(f.path)
}

// sumUp reads the file, and notes its size and sum.
func (f *capturedFile) sumUp() error {
	content, err := f.open()
	if err != nil {
		return err
	}
	t := newTally()
	_, err = io.Copy(t, content)
	f.Bytes, f.SHA256 = t.bytes, t.sum()
	return errors.Join(err, content.Close())
}

// read gives the content to use, all of it, and looks whether it is still what was summed up.
func (f *capturedFile) read(ctx context.Context, use func(io.Reader) error) error {
	content, err := f.open()
	if err != nil {
		return err
	}
	t := newTally()
	err = use(io.TeeReader(&interruptible{ctx, content}, t))
	if err == nil && t.check(&f.File) != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%s has changed while it was copied: try again", f.Path)
	}
	return errors.Join(err, content.Close())
}

// drain reads what is only compared.
func drain(_ *File, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}

// capturesMax is how often a moment is taken again because text files have changed meanwhile.
const capturesMax = 5

// capture takes the text files before and after the checkpoint: when they are the same, they are those of its moment.
func (r *Run) capture(ctx context.Context) (*captured, error) {
	for range capturesMax {
		before, _, err := r.readText()
		if err != nil {
			return nil, err
		}
		c := &captured{moment: time.Now().UTC().Truncate(time.Microsecond)}
		dir, done, err := r.Checkpoint(ctx)
		if err != nil {
			return nil, err
		}
		c.dir, c.done = dir, done
		after, left, err := r.readText()
		if err == nil && !sameText(before, after) {
			done()
			continue
		}
		if err == nil {
			c.left, err = left, r.replaceText(dir, after)
		}
		if _, has := after[r.Needs]; err == nil && r.Needs != "" && !has {
			err = fmt.Errorf("%s has no %s that can be backed up, so the backup would not be one of a home", r.Home, r.Needs)
		}
		if err == nil {
			for _, path := range slices.Sorted(maps.Keys(after)) {
				c.files = append(c.files, after[path])
			}
			err = errors.Join(c.addStore(dir), c.addRepository(r))
		}
		if err == nil {
			c.counts, err = r.examine(ctx, dir)
		}
		if err != nil {
			done()
			return nil, c.explain(err)
		}
		return c, nil
	}
	return nil, fmt.Errorf("the text files in %s change all the time: try again when nobody writes them", r.Home)
}

// explain says of an error when it comes from a server that has removed the checkpoint.
func (c *captured) explain(err error) error {
	var missing *fs.PathError
	_, gone := os.Stat(c.dir)
	if errors.Is(gone, fs.ErrNotExist) || errors.As(err, &missing) && errors.Is(missing, fs.ErrNotExist) && filepath.Dir(missing.Path) == c.dir {
		return fmt.Errorf("the server of the home stopped or started meanwhile, which removes the copy of its store; no backup was made, run it again: %w", err)
	}
	return err
}

// replaceText has the text files be those that the store says.
func (r *Run) replaceText(dir string, files map[string]capturedFile) error {
	if r.Text == nil {
		return nil
	}
	texts, err := r.Text(dir, slices.Sorted(maps.Keys(files)))
	for path, text := range texts {
		if files[path] = (capturedFile{File: File{Path: path, Mode: 0o644}, text: text}); text == nil {
			delete(files, path)
		}
	}
	return err
}

// textBytesMax is the size of the largest text file that a home has (cmd/troupe/HOME.md, "The folder").
const textBytesMax = 1 << 20

// repositoryFolder is where a home without a bucket has the files of its repository.
const repositoryFolder = "repository"

// notText are the entries of a home that are not text files, or not to be restored with them.
var notText = []string{DataFolder, repositoryFolder, ".git", ".store", "admin.sock"}

// partSuffix ends the name of a file that is being written, archiveSuffix that of a backup as people call it.
const (
	partSuffix    = ".part"
	archiveSuffix = ".tar.zst"
)

// readText reads the text files of the home. What is too large for one is left.
func (r *Run) readText() (files map[string]capturedFile, left []string, err error) {
	files = map[string]capturedFile{}
	err = walk(r.Home, "", func(path string, info fs.FileInfo) error {
		isBelow := func(folder string) bool {
			return strings.HasPrefix(filepath.Join(r.Home, path), folder+string(filepath.Separator))
		}
		if strings.HasSuffix(path, partSuffix) || strings.HasSuffix(path, archiveSuffix) || slices.ContainsFunc(r.Without, isBelow) {
			return nil
		}
		if info.Size() > textBytesMax {
			left = append(left, path)
			return nil
		}
		text, err := os.ReadFile(filepath.Join(r.Home, path))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files[path] = capturedFile{File: File{Path: path, Mode: info.Mode().Perm()}, text: text}
		return err
	}, notText...)
	return files, left, err
}

func sameText(a, b map[string]capturedFile) bool {
	return maps.EqualFunc(a, b, func(x, y capturedFile) bool { return x.Mode == y.Mode && string(x.text) == string(y.text) })
}

// depthMax ends links that lead back to where they came from.
const depthMax = 16

// walk visits the regular files below a folder by their paths, and follows links, of which mounted text files are made.
func walk(dir, below string, visit func(path string, info fs.FileInfo) error, without ...string) error {
	entries, err := os.ReadDir(filepath.Join(dir, below))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.ToSlash(filepath.Join(below, e.Name()))
		if slices.Contains(without, e.Name()) || strings.HasPrefix(e.Name(), "..") || strings.Count(path, "/") > depthMax {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, path))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went, or is a link to nothing
		case err != nil:
			return err
		case info.IsDir() && !isTarget(filepath.Join(dir, path)):
			err = walk(dir, path, visit)
		case info.Mode().IsRegular():
			err = visit(path, info)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// addStore adds the files of a checkpoint.
func (c *captured) addStore(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		f := capturedFile{File: File{Path: DataFolder + "/" + e.Name(), Bytes: info.Size(), Mode: 0o600}, path: filepath.Join(dir, e.Name())}
		if strings.HasSuffix(e.Name(), ".sst") {
			f.Modified = info.ModTime().UnixNano()
		}
		if f.Path == idFile {
			if err := f.sumUp(); err != nil {
				return err
			}
			c.idSum, f.SHA256 = f.SHA256, ""
		}
		c.files = append(c.files, f)
	}
	return nil
}

func (c *captured) addRepository(r *Run) error {
	if !r.Repository {
		return nil
	}
	err := walk(r.Home, repositoryFolder, func(path string, info fs.FileInfo) error {
		f := File{Path: path, Bytes: info.Size(), Mode: info.Mode().Perm()}
		c.files = append(c.files, capturedFile{File: f, path: filepath.Join(r.Home, path)})
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// cacheBytes is enough to read a store once.
const cacheBytes = 16 << 20

// examine opens the checkpoint, which checks it as a start does, and counts what is in it.
func (r *Run) examine(ctx context.Context, dir string) (counts Counts, err error) {
	store, err := persistence.Open(dir, persistence.Options{ReadOnly: true, CacheBytes: cacheBytes, VerifyBytesMax: -1})
	if err != nil {
		return Counts{}, fmt.Errorf("the checkpoint of the store cannot be opened: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if r.CountMax == 0 {
		if _, err := store.Verify(ctx); err != nil {
			return Counts{}, err
		}
		return Count(ctx, store)
	}
	bounded, cancel := context.WithTimeout(ctx, r.CountMax)
	defer cancel()
	counts, err = Count(bounded, store)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		counts.History, err = nil, nil
	}
	return counts, err
}
