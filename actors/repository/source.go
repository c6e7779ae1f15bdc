// Package repository has the files of the repository: their names, who may read which (group D of gateway/INTERFACE.md,
// "Groups"), and their contents for other packages. A Source is where the files are: a folder (package disk) or a
// bucket of an object store (package bucket). An index keeps the names of all files in memory, so that a list never
// walks a disk; the source tells it of changes, and now and then it walks everything. DESIGN.md says what is promised.
//
// The caller does Start, any number of concurrent calls, SetRights whenever rights.yaml changes, Stop, and only then
// closes the source.
package repository

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"troupe/actors/failure"
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
	// is not an error. changed does not wait.
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

// TooLarge is the error of a Source's Open for a file of more bytes than its limit.
func TooLarge(bytesMax int64) error {
	return &failure.Error{
		Kind: failure.ErrTooLarge, Reason: "the file is too large", Cause: fmt.Errorf("more than %d bytes", bytesMax),
	}
}

// errIndexing is why a service is not ready, and what failure.ErrUnavailable wraps when a list has waited too long.
var errIndexing = errors.New("the files are being indexed")

// errTooManyNames: the names of one folder do not fit. It never leaves the package.
var errTooManyNames = errors.New("too many names in one folder")

const top = "/"

// IsPath reports whether p is the canonical path of a file or folder: absolute in the repository with its leading
// slash, with nothing that path.Clean would change, in valid UTF-8 without control characters. "/" is the repository.
func IsPath(p string) bool { return strings.HasPrefix(p, "/") && path.Clean(p) == p && isText(p) }

// IsName reports whether a file or folder of this name can have a path. Others are left out of the repository.
func IsName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/") && isText(name)
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }

func join(folder, name string) string {
	if folder == top {
		return top + name
	}
	return folder + "/" + name
}

// Names are the names on the way from the repository to a path, which is canonical.
func Names(p string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := p[1:]; rest != ""; {
			name, behind, _ := strings.Cut(rest, "/")
			if !yield(name) {
				return
			}
			rest = behind
		}
	}
}

func depth(p string) int {
	if p == top {
		return 0
	}
	return strings.Count(p, "/")
}

// extensionBytesMax bounds an extension. No file system that we know has longer names.
const extensionBytesMax = 1024

// Extension is what names of files end with, without the dot in front. It may hold dots.
type Extension string

// ParseExtension reads an extension as callers write it: one leading dot is dropped (gateway/INTERFACE.md,
// "Extensions").
func ParseExtension(text string) (Extension, error) {
	extension := strings.TrimPrefix(text, ".")
	switch {
	case strings.TrimSpace(extension) == "":
		return "", failure.Refuse(failure.ErrInvalid, "the extension is missing or blank")
	case len(extension) > extensionBytesMax:
		return "", failure.Refuse(failure.ErrInvalid, "the extension is longer than %d bytes", extensionBytesMax)
	case !utf8.ValidString(extension):
		return "", failure.Refuse(failure.ErrInvalid, "the extension is not UTF-8")
	case strings.ContainsFunc(extension, unicode.IsControl):
		return "", failure.Refuse(failure.ErrInvalid, "the extension has a control character")
	}
	return Extension(extension), nil
}

// Matches reports whether the name of a file ends with a dot and the extension, in the same letters
// (gateway/INTERFACE.md, "Extensions").
func (e Extension) Matches(name string) bool {
	dot := len(name) - len(e) - 1
	return dot >= 0 && name[dot] == '.' && name[dot+1:] == string(e)
}

// rightsSchema is held against ParseRights by tests, both ways.
//
//go:embed rights.schema.json
var rightsSchema string

// RightsSchema returns the JSON Schema 2020-12 of rights.yaml, for editors and other tools.
// Whatever it refuses, ParseRights refuses.
func RightsSchema() string { return rightsSchema }
