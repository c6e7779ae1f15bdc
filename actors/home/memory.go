package home

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// memory is a file system of texts by their paths. A folder is there while a text is below it.
type memory map[string]packed

// Open implements fs.FS. What it opens is an fs.ReadDirFile.
func (m memory) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if text, isFile := m[name]; isFile {
		return &openText{info: textInfo{path.Base(name), text, false}, content: bytes.NewReader(text.text)}, nil
	}
	entries := m.entries(name)
	if name != "." && len(entries) == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openText{info: textInfo{name: path.Base(name), folder: true}, left: entries}, nil
}

func (m memory) entries(folder string) (entries []fs.DirEntry) {
	seen := map[string]bool{}
	for name, text := range m {
		inside, found := name, true
		if folder != "." {
			inside, found = strings.CutPrefix(name, folder+"/")
		}
		first, _, deeper := strings.Cut(inside, "/")
		if !found || seen[first] {
			continue
		}
		if seen[first] = true; deeper {
			text = packed{}
		}
		entries = append(entries, fs.FileInfoToDirEntry(textInfo{first, text, deeper}))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

type textInfo struct {
	name   string
	text   packed
	folder bool
}

func (i textInfo) Name() string       { return i.name }
func (i textInfo) Size() int64        { return int64(len(i.text.text)) }
func (i textInfo) ModTime() time.Time { return i.text.modified }
func (i textInfo) IsDir() bool        { return i.folder }
func (i textInfo) Sys() any           { return nil }

func (i textInfo) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type openText struct {
	info    textInfo
	content *bytes.Reader // nil: a folder
	left    []fs.DirEntry
}

func (o *openText) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openText) Close() error               { return nil }

func (o *openText) Read(b []byte) (int, error) {
	if o.content == nil {
		return 0, &fs.PathError{Op: "read", Path: o.info.name, Err: errors.New("it is a folder")}
	}
	return o.content.Read(b)
}

// ReadDir implements fs.ReadDirFile.
func (o *openText) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(o.left) == 0 {
		return nil, io.EOF
	}
	if n <= 0 {
		n = len(o.left)
	}
	n = min(n, len(o.left))
	read := o.left[:n]
	o.left = o.left[n:]
	return read, nil
}
