package home

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// MaxPackedBytes is how long a packed home may be, and how long all its texts together.
const MaxPackedBytes = 32 << 20

// maxPackedFiles bounds the entries of a packed home.
const maxPackedFiles = 10_000

// ErrNotPacked is wrapped by what Unpack returns for an archive that is not a home.
var ErrNotPacked = errors.New("not a packed home")

type packed struct {
	text     []byte
	modified time.Time
}

func (s *Set) files() map[string]packed {
	all := map[string]packed{IdentityFile: {text: s.identity}}
	if s.rights != nil {
		all[RightsFile] = packed{text: s.rights}
	}
	put := func(file string, text []byte, refs map[string][]byte, modified time.Time) {
		all[file] = packed{text, modified}
		for ref, text := range refs {
			all[path.Join(path.Dir(file), ref)] = packed{text: text}
		}
	}
	for _, w := range s.Workflows {
		put(w.File, w.Text, w.Refs, time.Time{})
	}
	for _, t := range s.Templates {
		put(t.File, t.Text, t.Refs, t.Parsed.Modified)
	}
	return all
}

// TextDigest stands for the names and the texts of all files of the set, in hexadecimal.
func (s *Set) TextDigest() string {
	h, all := sha256.New(), s.files()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		add(h, name)
		add(h, all[name].text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Pack returns the text files of a set without faults as a tar archive: identity.yaml, rights.yaml, and the definitions
// and templates with the files that they refer to.
func (s *Set) Pack() ([]byte, error) {
	var out bytes.Buffer
	w, all := tar.NewWriter(&out), s.files()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(f.text)), ModTime: f.modified, Format: tar.FormatPAX}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		_, _ = w.Write(f.text) // a buffer takes everything
	}
	_ = w.Close() // NB: all texts are as long as their headers say
	if out.Len() > MaxPackedBytes || len(all) > maxPackedFiles {
		return nil, fmt.Errorf("pack home: %d files with %d bytes, more than %d or %d", len(all), out.Len(), maxPackedFiles, MaxPackedBytes)
	}
	return out.Bytes(), nil
}

// Unpack reads a tar archive of a home into memory. It may come from anybody: the error wraps ErrNotPacked, with the
// reason, for one that has anything but regular files and folders, a name twice or out of its place, or what no home
// has; or it is the reader's.
func Unpack(archive io.Reader) (fs.FS, error) {
	all, err := io.ReadAll(io.LimitReader(archive, MaxPackedBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(all) > MaxPackedBytes:
		return nil, notPacked("it has more than %d bytes", MaxPackedBytes)
	case !bytes.HasSuffix(all, endOfArchive[:]):
		// NB: package tar takes an archive whose end is missing: a part of a home would be published as the whole.
		return nil, notPacked("it is not a tar archive, or only part of one")
	}
	return unpack(tar.NewReader(bytes.NewReader(all)))
}

var endOfArchive [1024]byte

func notPacked(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotPacked, fmt.Sprintf(format, args...))
}

func unpack(r *tar.Reader) (fs.FS, error) {
	files, left, entries := memory{}, MaxPackedBytes, 0
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, noFolders(files)
		}
		if err != nil {
			return nil, notPacked("it is not a tar archive: %v", err)
		}
		if entries++; entries > maxPackedFiles {
			return nil, notPacked("it has more than %d entries", maxPackedFiles)
		}
		name, kept, err := placeOf(h)
		if err != nil {
			return nil, err
		}
		if !kept {
			continue
		}
		if _, twice := files[name]; twice {
			return nil, notPacked("%s is there twice", name)
		}
		if h.Size > MaxFileBytes {
			return nil, notPacked("%s is larger than %d bytes", name, MaxFileBytes)
		}
		text, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
		if err != nil {
			return nil, notPacked("%s is cut off: %v", name, err)
		}
		// NB: what a sparse file stands for can be longer than the archive.
		if left -= len(text); left < 0 || len(text) > MaxFileBytes {
			return nil, notPacked("its files have more than %d bytes", MaxPackedBytes)
		}
		files[name] = packed{text, h.ModTime}
	}
}

// placeOf returns where an entry belongs in the home. It is not kept when it is a folder or hidden.
func placeOf(h *tar.Header) (name string, kept bool, err error) {
	folder := h.Typeflag == tar.TypeDir
	if !folder && h.Typeflag != tar.TypeReg {
		return "", false, notPacked("%.60q is neither a regular file nor a folder", h.Name)
	}
	name = strings.TrimPrefix(h.Name, "./") // as "tar -c ." writes them
	if folder {
		if name = strings.TrimSuffix(name, "/"); name == "" {
			return "", false, nil
		}
	}
	if !fs.ValidPath(name) {
		return "", false, notPacked("%.60q is not a path in a home", h.Name)
	}
	parts := strings.Split(name, "/")
	if slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(part, ".") }) {
		return "", false, nil
	}
	isFolder := slices.Contains(folders, parts[0])
	if belongs := isFolder && (folder || len(parts) > 1) || !folder && (name == IdentityFile || name == RightsFile); !belongs {
		return "", false, notPacked("%.60q does not belong to what is published: that is %s, %s and the folders %s",
			name, IdentityFile, RightsFile, strings.Join(folders, ", "))
	}
	return name, !folder, nil
}

func noFolders(files memory) error {
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, isFile := files[dir]; isFile {
				return notPacked("%.60q is a file and a folder", dir)
			}
		}
	}
	return nil
}

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
