package sourcetest

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"sync"

	"troupe/actors/repository"
)

// Memory is a source in memory, and the editor of it. NewMemory makes one.
type Memory struct {
	mu struct {
		sync.Mutex
		files   map[string]*memoryFile // by path; a folder is nil
		version uint64
		faults  map[string]error // of List, by folder
		lists   int
		gate    chan struct{} // List waits until it is closed; nil: it does not wait
	}
	changes chan repository.Change
	// Quiet keeps changes from being told. It is set before use.
	Quiet bool
	// Unwatched is what listings say. It is set before use.
	Unwatched bool
}

type memoryFile struct {
	text    string
	version uint64
}

// NewMemory returns a source with an empty repository.
func NewMemory() *Memory {
	m := &Memory{changes: make(chan repository.Change, 1<<16)}
	m.mu.files, m.mu.faults = map[string]*memoryFile{"/": nil}, map[string]error{}
	return m
}

// List implements repository.Source.
func (m *Memory) List(ctx context.Context, folder string) (*repository.Listing, error) {
	m.mu.Lock()
	gate := m.mu.gate
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.lists++
	if err := m.mu.faults[folder]; err != nil {
		return nil, err
	}
	if file, found := m.mu.files[folder]; !found || file != nil {
		return nil, fs.ErrNotExist
	}
	listing := &repository.Listing{Unwatched: m.Unwatched}
	for p, file := range m.mu.files {
		switch {
		case !strings.HasPrefix(p, folder) || path.Dir(p) != folder || p == "/":
		case file == nil:
			listing.Folders = append(listing.Folders, path.Base(p))
		default:
			listing.Files = append(listing.Files, path.Base(p))
		}
	}
	return listing, nil
}

// Open implements repository.Source.
func (m *Memory) Open(_ context.Context, file string) (*repository.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.mu.files[file]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	identity := repository.Identity{Path: file, Modified: int64(f.version), Size: int64(len(f.text)), Inode: f.version}
	return repository.NewFile(memoryContent{strings.NewReader(f.text)}, identity), nil
}

type memoryContent struct{ *strings.Reader }

func (memoryContent) Close() error { return nil }

// Watch implements repository.Source.
func (m *Memory) Watch(ctx context.Context, changed func(repository.Change)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-m.changes:
			changed(c)
		}
	}
}

// Tell tells a change that need not be one.
func (m *Memory) Tell(c repository.Change) { m.changes <- c }

// Put writes a file, with the folders above it.
func (m *Memory) Put(file, text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.version++
	m.makeFolderLocked(path.Dir(file))
	m.mu.files[file] = &memoryFile{text, m.mu.version}
	m.tellLocked(file)
	return nil
}

func (m *Memory) makeFolderLocked(folder string) {
	if _, found := m.mu.files[folder]; !found {
		m.makeFolderLocked(path.Dir(folder))
		m.mu.files[folder] = nil
		m.tellLocked(folder)
	}
}

func (m *Memory) tellLocked(p string) {
	if !m.Quiet {
		m.changes <- repository.Change{Folder: path.Dir(p), Name: path.Base(p)}
	}
}

// Remove removes a file, or a folder with everything in it.
func (m *Memory) Remove(p string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.takeLocked(p)
	m.tellLocked(p)
	return nil
}

func (m *Memory) takeLocked(p string) map[string]*memoryFile {
	taken := map[string]*memoryFile{}
	for at, file := range m.mu.files {
		if at == p || strings.HasPrefix(at, p+"/") {
			taken[strings.TrimPrefix(at, p)] = file
			delete(m.mu.files, at)
		}
	}
	return taken
}

// Rename gives a file or a folder another path, in a folder that exists. It replaces what was there.
func (m *Memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	moved := m.takeLocked(from)
	m.takeLocked(to)
	for behind, file := range moved {
		m.mu.files[to+behind] = file
	}
	m.tellLocked(from)
	m.tellLocked(to)
	return nil
}

// Fail makes List of a folder return an error; nil ends that.
func (m *Memory) Fail(folder string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.faults[folder] = err
}

// Hold makes List wait until release is called.
func (m *Memory) Hold() (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gate := make(chan struct{})
	m.mu.gate = gate
	return sync.OnceFunc(func() {
		m.mu.Lock()
		m.mu.gate = nil
		m.mu.Unlock()
		close(gate)
	})
}

// Lists is how often List was answered.
func (m *Memory) Lists() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.lists
}
