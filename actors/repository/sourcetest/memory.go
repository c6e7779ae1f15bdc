package sourcetest

import (
	"bytes"
	"context"
	"io/fs"
	"path"
	"strings"
	"sync"

	"troupe/actors/repository"
)

// Memory is a source in memory, and the editor of it. The zero value is not
// usable; make one with NewMemory. Its methods are safe for concurrent use, but
// each change is told once: to one Watch, so that a source has one service.
type Memory struct {
	mu struct {
		sync.Mutex
		folders map[string]*memoryFolder
		version uint64
		faults  map[string]error // of List, by folder
		lists   int
		gate    chan struct{} // List waits for it to be closed, when there is one
	}
	changes chan repository.Change
	// Quiet keeps changes from being told. It is set before use.
	Quiet bool
	// Unwatched is what listings say. It is set before use.
	Unwatched bool
}

type memoryFolder struct {
	files   map[string]*memoryFile
	folders map[string]bool
}

type memoryFile struct {
	text    string
	version uint64
}

// NewMemory returns a source with the repository's folder and nothing in it.
func NewMemory() *Memory {
	m := &Memory{changes: make(chan repository.Change, 1<<16)}
	m.mu.folders = map[string]*memoryFolder{"/": newMemoryFolder()}
	m.mu.faults = map[string]error{}
	return m
}

func newMemoryFolder() *memoryFolder {
	return &memoryFolder{files: map[string]*memoryFile{}, folders: map[string]bool{}}
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
	in := m.mu.folders[folder]
	if in == nil {
		return nil, fs.ErrNotExist
	}
	listing := &repository.Listing{Unwatched: m.Unwatched}
	for name := range in.files {
		listing.Files = append(listing.Files, name)
	}
	for name := range in.folders {
		listing.Folders = append(listing.Folders, name)
	}
	return listing, nil
}

// Open implements repository.Source.
func (m *Memory) Open(_ context.Context, file string) (*repository.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in := m.mu.folders[path.Dir(file)]
	if !repository.IsPath(file) || in == nil || in.files[path.Base(file)] == nil {
		return nil, fs.ErrNotExist
	}
	f := in.files[path.Base(file)]
	identity := repository.Identity{Path: file, Modified: int64(f.version), Size: int64(len(f.text)), Inode: f.version}
	return repository.NewFile(memoryContent{bytes.NewReader([]byte(f.text))}, identity), nil
}

type memoryContent struct{ *bytes.Reader }

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
	m.folder(path.Dir(file))
	m.mu.version++
	m.mu.folders[path.Dir(file)].files[path.Base(file)] = &memoryFile{text, m.mu.version}
	m.tellLocked(file)
	return nil
}

// folder makes a folder and those above it.
func (m *Memory) folder(folder string) {
	if m.mu.folders[folder] != nil {
		return
	}
	m.folder(path.Dir(folder))
	m.mu.folders[folder] = newMemoryFolder()
	m.mu.folders[path.Dir(folder)].folders[path.Base(folder)] = true
	m.tellLocked(folder)
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
	m.removeLocked(p)
	m.tellLocked(p)
	return nil
}

func (m *Memory) removeLocked(p string) {
	above := m.mu.folders[path.Dir(p)]
	delete(above.files, path.Base(p))
	delete(above.folders, path.Base(p))
	for folder := range m.mu.folders {
		if folder == p || strings.HasPrefix(folder, p+"/") {
			delete(m.mu.folders, folder)
		}
	}
}

// Rename gives a file or a folder another path, in a folder that exists. What was
// there is gone.
func (m *Memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	above, target := m.mu.folders[path.Dir(from)], m.mu.folders[path.Dir(to)]
	file := above.files[path.Base(from)]
	moved := map[string]*memoryFolder{}
	for folder, in := range m.mu.folders {
		if folder == from || strings.HasPrefix(folder, from+"/") {
			moved[to+strings.TrimPrefix(folder, from)] = in
		}
	}
	m.removeLocked(from)
	m.removeLocked(to)
	if file != nil {
		target.files[path.Base(to)] = file
	} else {
		target.folders[path.Base(to)] = true
	}
	for folder, in := range moved {
		m.mu.folders[folder] = in
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
