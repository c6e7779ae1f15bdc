package bucket

import (
	"context"
	"hash/maphash"
	"strings"
	"time"

	"troupe/actors/repository"
)

// lookShare bounds the looks of Watch: the pause between two is that many times as long as one.
const lookShare = 20

// pauseAfter goes by the quicker one of the last two looks: one alone may have waited for something that has passed.
func pauseAfter(poll, took, before time.Duration) time.Duration {
	return max(poll, lookShare*min(took, before))
}

type listed struct {
	sum   uint64 // that of its names
	round int    // the number of the newest look before List showed it, or that has met it
}

var seed = maphash.MakeSeed()

// sumOf is what one name adds to the sum of its folder. The same names in another order have the same sum.
func sumOf(name string, isFolder bool) uint64 {
	type entry struct {
		name     string
		isFolder bool
	}
	return maphash.Comparable(seed, entry{name, isFolder})
}

// Watch implements repository.Source: it looks at all keys now and then, and tells of each folder that differs from
// what List has shown, until List shows it again.
func (b *Bucket) Watch(ctx context.Context, changed func(repository.Change)) error {
	pause, failed, before := b.o.Poll, false, time.Duration(0)
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		begun := time.Now()
		err := b.look(ctx, changed)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failed:
			b.o.Log.Warn().Err(err).Str("bucket", b.o.Bucket).Msg("the bucket cannot be looked at; its changes are not seen")
		case err == nil && failed:
			b.o.Log.Info().Str("bucket", b.o.Bucket).Msg("the bucket is looked at again")
		}
		failed = err != nil
		took := time.Since(begun)
		pause, before = pauseAfter(b.o.Poll, took, before), took
	}
}

// They come in ascending order, so that those of a folder and below it come together. A store with another order only
// makes it tell of folders that have not changed.
func (b *Bucket) look(ctx context.Context, changed func(repository.Change)) error {
	b.mu.Lock()
	b.mu.round++
	w := &walk{bucket: b, changed: changed, round: b.mu.round, open: []opened{{path: "/"}}}
	b.mu.Unlock()
	for object := range b.objects(ctx, b.o.Prefix, true) {
		if object.Err != nil {
			return object.Err
		}
		if key, ok := strings.CutPrefix(object.Key, b.o.Prefix); ok && isObject(object.Key) {
			w.meet(key)
		}
	}
	w.leave(0)
	w.forget()
	return nil
}

type walk struct {
	bucket  *Bucket
	changed func(repository.Change)
	round   int
	open    []opened // the folders on the way to the last key, the bucket first
}

type opened struct {
	name, path string
	sum        uint64
}

// Like List it leaves out a part that is no name, with everything behind it.
func (w *walk) meet(key string) {
	depth := 0
	for {
		name, behind, isFolder := strings.Cut(key, "/")
		if !isFolder {
			break
		}
		if !repository.IsName(name) {
			return
		}
		depth++
		if depth == len(w.open) || w.open[depth].name != name {
			w.leave(depth)
			above := &w.open[depth-1]
			above.sum += sumOf(name, true)
			w.open = append(w.open, opened{name: name, path: strings.TrimSuffix(above.path, "/") + "/" + name})
		}
		key = behind
	}
	w.leave(depth + 1)
	if repository.IsName(key) { // a folder's own mark has no name
		w.open[depth].sum += sumOf(key, false)
	}
}

func (w *walk) leave(depth int) {
	for len(w.open) > depth {
		last := w.open[len(w.open)-1]
		w.open = w.open[:len(w.open)-1]
		if w.bucket.differs(last.path, last.sum, w.round) {
			w.changed(repository.Change{Folder: last.path})
		}
	}
}

func (b *Bucket) differs(folder string, sum uint64, round int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.mu.folders[folder]
	if known == nil {
		return false // it was never listed, or the folder above it is told
	}
	known.round = round
	return known.sum != sum
}

// forget drops the folders that the walk did not meet: they have gone, and the folder above was told.
func (w *walk) forget() {
	w.bucket.mu.Lock()
	defer w.bucket.mu.Unlock()
	for folder, known := range w.bucket.mu.folders {
		if known.round < w.round {
			delete(w.bucket.mu.folders, folder)
		}
	}
}
