package disk

import (
	"sync"

	"troupe/persistence/integrity"
)

// Kept is the tables that readers of the previous generation need. The new generation may try to remove them; they are
// removed when those readers have left, or, after a crash, by Pebble at the next opening.
type Kept struct {
	mu     sync.Mutex
	tables map[string]bool // by name; nil when none are kept
	paths  []string        // tables that are to be removed later
}

// Hold keeps these tables from now on.
func (k *Kept) Hold(tables []integrity.Table) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tables = make(map[string]bool, len(tables))
	for _, t := range tables {
		k.tables[t.Name()] = true
	}
}

// keep reports whether a file must stay for now, and remembers to remove it.
func (k *Kept) keep(path, name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.tables[name] {
		return false
	}
	k.paths = append(k.paths, path)
	return true
}

// Release ends the keeping and returns the files to remove.
func (k *Kept) Release() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	paths := k.paths
	k.tables, k.paths = nil, nil
	return paths
}
