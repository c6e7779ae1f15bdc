package repository

import (
	"context"
	"io"
)

// Source is where the files of a repository are. Its methods are safe for concurrent use and take canonical paths.
type Source interface {
	// List returns what is directly in a folder. The error wraps fs.ErrNotExist when there is no such folder, and
	// fs.ErrPermission when it may not be read; any other means that it may be tried again.
	//
	// It also begins to watch the folder: what changes after the call is told to Watch.
	List(ctx context.Context, folder string) (*Listing, error)
	// Open opens a file as it is now. The error wraps fs.ErrNotExist when there is no such file, fs.ErrPermission when
	// it may not be read, ErrTooLarge, and failure.ErrUnavailable when it may be tried again; so does that of a file's
	// ReadAt.
	Open(ctx context.Context, file string) (*File, error)
	// Watch calls changed, from one goroutine at a time, with what may have changed since List, until ctx ends, which
	// is no error. changed does not wait.
	Watch(ctx context.Context, changed func(Change)) error
}

// Listing is what is in a folder: names that IsName allows, each once, in any order. It belongs to the caller.
type Listing struct {
	Files, Folders []string
	Left           int  // how many names were left out because IsName refuses them
	Unwatched      bool // Unwatched says that changes of the folder will not be told
}

// Change says what may have changed.
type Change struct {
	// Folder is where names have come or gone. Empty: anything may have changed.
	Folder string
	// Name is one of them, or empty. If it is a folder, it may be another folder than before, with everything below.
	Name string
}

// Identity tells one content of a file from another: two opened files whose identities are equal have the same content,
// as far as the source knows.
type Identity struct {
	Path     string
	Modified int64  // the time of the last change, in nanoseconds since 1970
	Size     int64  // in bytes
	Inode    uint64 // the number of the file in its file system, or whatever else a source knows a version by
}

// Content is an opened file of a source.
type Content interface {
	io.ReaderAt
	io.Closer
}

// File is a file that is open for reading. Its methods are safe for concurrent use; Close must be called.
type File struct {
	content  *io.SectionReader
	closer   io.Closer
	identity Identity
}

// NewFile is for sources. The content's bytes beyond identity.Size are not shown.
func NewFile(content Content, identity Identity) *File {
	return &File{content: io.NewSectionReader(content, 0, identity.Size), closer: content, identity: identity}
}

// ReadAt reads as io.ReaderAt does. A file that somebody shortens meanwhile ends early, with io.EOF; one that grows
// does not.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.content.ReadAt(p, off) }

// Size is the file's size in bytes at the time of Open.
func (f *File) Size() int64 { return f.identity.Size }

// Identity returns what the file was at the time of Open.
func (f *File) Identity() Identity { return f.identity }

// Close ends the reading.
func (f *File) Close() error { return f.closer.Close() }
