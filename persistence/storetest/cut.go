package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sectorBytes is what a disk writes wholly or not at all.
const sectorBytes = 512

// Cut is one way in which a loss of power leaves a disk.
type Cut struct {
	Where string       // what was about to happen, and what is left of a write
	Take  func() *Disk // the disk; good until the function returns that was told of the cut
}

// OnCut has the disk tell of every cut that is possible, in order: before each write, sync, and change of a folder, either
// nothing that was not synced is there or all of it is, and of a write all of its sectors or only the first 1, 2, 3….
// The disk waits for tell, which must not use it. Call OnCut before Open.
func (d *Disk) OnCut(tell func(Cut)) { d.cuts = &cuttableFS{FS: d.mem, disk: d, tell: tell} }

// LoseSyncs makes the disk report syncs that it did not do: the bug that a test of cuts must find. Call it after OnCut.
func (d *Disk) LoseSyncs() { d.cuts.losesSyncs = true }

// cuttableFS is the disk's memory with one operation at a time.
type cuttableFS struct {
	vfs.FS
	disk       *Disk
	tell       func(Cut)
	losesSyncs bool
	mu         sync.Mutex // held over an operation that changes something, and what is told of it
}

// change tells of the cuts before an operation, and carries it out.
func (f *cuttableFS) change(what string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut(what)
	return do()
}

// cut tells of the two cuts without a torn write.
func (f *cuttableFS) cut(what string) {
	f.tell(Cut{what + ", without what was not synced", func() *Disk { return diskOf(f.disk.mem.CrashClone(vfs.CrashCloneCfg{}), f.disk.logBytes) }})
	f.tell(Cut{what, f.whole})
}

// whole is the disk with what was not synced.
func (f *cuttableFS) whole() *Disk {
	all := vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}
	return diskOf(f.disk.mem.CrashClone(all), f.disk.logBytes)
}

func (f *cuttableFS) file(what, name string, open func() (vfs.File, error)) (file vfs.File, err error) {
	err = f.change(what+" "+name, func() error {
		file, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &cuttableFile{File: file, fs: f, name: name}, nil
}

func (f *cuttableFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file("create", name, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *cuttableFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.file("open", name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, o...) })
}

func (f *cuttableFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file("reuse "+from+" as", to, func() (vfs.File, error) { return f.FS.ReuseForWrite(from, to, c) })
}

func (f *cuttableFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	return &cuttableFile{File: file, fs: f, name: name}, err
}

func (f *cuttableFS) Link(from, to string) error {
	return f.change("link "+from+" as "+to, func() error { return f.FS.Link(from, to) })
}

func (f *cuttableFS) Rename(from, to string) error {
	return f.change("rename "+from+" to "+to, func() error { return f.FS.Rename(from, to) })
}

func (f *cuttableFS) Remove(name string) error {
	return f.change("remove "+name, func() error { return f.FS.Remove(name) })
}

func (f *cuttableFS) RemoveAll(name string) error {
	return f.change("remove all of "+name, func() error { return f.FS.RemoveAll(name) })
}

func (f *cuttableFS) MkdirAll(name string, mode os.FileMode) error {
	return f.change("make folder "+name, func() error { return f.FS.MkdirAll(name, mode) })
}

func (f *cuttableFS) Unwrap() vfs.FS { return f.FS }

// cuttableFile is a file, or a folder that can be synced. One goroutine writes at a time.
type cuttableFile struct {
	vfs.File
	fs   *cuttableFS
	name string
	at   int64 // where Write writes
}

func (f *cuttableFile) Write(p []byte) (n int, err error) {
	err = f.write(p, f.at, func() error {
		n, err = f.File.Write(p)
		return err
	})
	f.at += int64(n)
	return n, err
}

func (f *cuttableFile) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.write(p, at, func() error {
		n, err = f.File.WriteAt(p, at)
		return err
	})
	return n, err
}

func (f *cuttableFile) write(p []byte, at int64, do func() error) error {
	what := fmt.Sprintf("write %d bytes at %d of %s", len(p), at, f.name)
	return f.fs.change(what, func() error {
		end := at + int64(len(p))
		for torn := at - at%sectorBytes + sectorBytes; torn < end; torn += sectorBytes {
			f.fs.tell(Cut{fmt.Sprintf("%s, torn at %d", what, torn), func() *Disk { return f.torn(p[:torn-at], at) }})
		}
		return do()
	})
}

// torn is the disk with the beginning of a write.
func (f *cuttableFile) torn(p []byte, at int64) *Disk {
	d := f.fs.whole()
	if _, err := d.mem.Stat(f.name); err != nil {
		return d // it was removed while it was open
	}
	file, err := d.mem.OpenReadWrite(f.name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = file.WriteAt(p, at)
	}
	if err != nil {
		panic(err) // a disk in memory fails nothing
	}
	if err := file.Close(); err != nil {
		panic(err)
	}
	return diskOf(d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}), d.logBytes)
}

func (f *cuttableFile) sync(do func() error) error {
	return f.fs.change("sync "+f.name, func() error {
		if f.fs.losesSyncs {
			return nil
		}
		return do()
	})
}

func (f *cuttableFile) Sync() error     { return f.sync(f.File.Sync) }
func (f *cuttableFile) SyncData() error { return f.sync(f.File.SyncData) }
