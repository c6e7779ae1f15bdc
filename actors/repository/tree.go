package repository

import (
	"context"
	"slices"
	"strings"
)

// A snapshot shares its nodes with the tree until they are changed: each node carries the generation that made it, a
// snapshot begins the next generation, and only nodes of the present one are changed in place. Others are copied on the
// way from the top to them.
type tree struct {
	root           *node
	generation     uint64
	dirty          bool // something was changed since the last snapshot
	files, folders int  // folders without the repository itself
}

type node struct {
	generation uint64
	files      names
	folders    []child // in the order of compareFolders
}

type child struct {
	name string
	node *node
}

// names is a list of names in ascending order, in one piece of memory: a million strings of their own would be three
// times as large.
type names struct {
	text string
	ends []uint32
}

// namesBytesMax bounds the names of one folder, so that places in them fit.
const namesBytesMax = 1 << 31

func newNames(sorted []string) names {
	if len(sorted) == 0 {
		return names{}
	}
	var text strings.Builder
	text.Grow(bytesOf(sorted))
	ends := make([]uint32, len(sorted))
	for i, s := range sorted {
		text.WriteString(s)
		ends[i] = uint32(text.Len())
	}
	return names{text.String(), ends}
}

func bytesOf(names []string) (total int) {
	for _, name := range names {
		total += len(name)
	}
	return total
}

func (n *names) len() int { return len(n.ends) }

func (n *names) at(i int) string {
	if i == 0 {
		return n.text[:n.ends[0]]
	}
	return n.text[n.ends[i-1]:n.ends[i]]
}

func (n *names) equal(sorted []string) bool {
	if n.len() != len(sorted) {
		return false
	}
	for i, s := range sorted {
		if n.at(i) != s {
			return false
		}
	}
	return true
}

// compareFolders orders folders by their names with a slash behind: "a-b" is before "a", since '-' is before '/'.
func compareFolders(a, b string) int {
	common := min(len(a), len(b))
	if c := strings.Compare(a[:common], b[:common]); c != 0 {
		return c
	}
	switch {
	case len(a) > common:
		return compareToSlash(a[common])
	case len(b) > common:
		return -compareToSlash(b[common])
	}
	return 0
}

func compareToSlash(c byte) int {
	if c < '/' {
		return -1
	}
	return 1 // a name has no slash
}

func isBeforeFolder(file, folder string) bool {
	if len(file) <= len(folder) {
		return file <= folder
	}
	if c := strings.Compare(file[:len(folder)], folder); c != 0 {
		return c < 0
	}
	return file[len(folder)] < '/'
}

func newTree() *tree { return &tree{root: &node{generation: 1}, generation: 1, dirty: true} }

func (n *node) childAt(name string) (int, bool) {
	return slices.BinarySearchFunc(n.folders, name, func(c child, name string) int { return compareFolders(c.name, name) })
}

func (t *tree) find(folder string) *node {
	n := t.root
	for name := range Names(folder) {
		i, found := n.childAt(name)
		if !found {
			return nil
		}
		n = n.folders[i].node
	}
	return n
}

// own returns the node of a folder that exists, such that it can be changed.
func (t *tree) own(folder string) *node {
	t.root = t.mine(t.root)
	n := t.root
	for name := range Names(folder) {
		i, _ := n.childAt(name)
		n.folders[i].node = t.mine(n.folders[i].node)
		n = n.folders[i].node
	}
	return n
}

func (t *tree) mine(n *node) *node {
	if n.generation == t.generation {
		return n
	}
	return &node{generation: t.generation, files: n.files, folders: slices.Clone(n.folders)}
}

// replace sets what is directly in a folder, and sorts both lists. fresh are the folders that are new; known: the tree
// has the folder.
func (t *tree) replace(folder string, files, folders []string) (fresh []string, known bool) {
	n := t.find(folder)
	if n == nil {
		return nil, false
	}
	slices.Sort(files)
	slices.SortFunc(folders, compareFolders)
	sameFiles := n.files.equal(files)
	sameFolders := slices.EqualFunc(n.folders, folders, func(c child, name string) bool { return c.name == name })
	if sameFiles && sameFolders {
		return nil, true
	}
	n = t.own(folder)
	t.dirty = true
	if !sameFiles {
		t.files += len(files) - n.files.len()
		n.files = newNames(files)
	}
	if !sameFolders {
		fresh = t.replaceFolders(n, folders)
	}
	return fresh, true
}

func (t *tree) replaceFolders(n *node, folders []string) (fresh []string) {
	before := n.folders
	n.folders = make([]child, 0, len(folders))
	for _, name := range folders {
		for len(before) > 0 && compareFolders(before[0].name, name) < 0 {
			t.forget(before[0].node)
			before = before[1:]
		}
		if len(before) > 0 && before[0].name == name {
			n.folders = append(n.folders, before[0])
			before = before[1:]
			continue
		}
		n.folders = append(n.folders, child{strings.Clone(name), &node{generation: t.generation}})
		fresh = append(fresh, name)
		t.folders++
	}
	for _, gone := range before {
		t.forget(gone.node)
	}
	return fresh
}

func (t *tree) forget(n *node) {
	t.files -= n.files.len()
	t.folders--
	for _, c := range n.folders {
		t.forget(c.node)
	}
}

// snapshot is a tree at one moment. It never changes.
type snapshot struct {
	root           *node
	files, folders int
}

func (t *tree) snapshot() *snapshot {
	t.generation++
	t.dirty = false
	return &snapshot{root: t.root, files: t.files, folders: t.folders}
}

type listing struct {
	ctx       context.Context // of the call
	extension Extension
	yield     func(path string) error
	path      []byte // of the folder in which it is, with a slash behind
	steps     int
}

// stepsUnasked is how many names are passed between two looks at the context.
const stepsUnasked = 4096

func (s *snapshot) list(ctx context.Context, extension Extension, v view, yield func(path string) error) error {
	l := &listing{ctx: ctx, extension: extension, yield: yield, path: []byte(top)}
	return l.folder(s.root, v)
}

func (l *listing) folder(n *node, v view) error {
	settled := v.settled()
	if settled && !v.readable {
		return nil
	}
	files, here := n.files.len(), len(l.path)
	for i, j := 0, 0; i < files || j < len(n.folders); {
		if l.steps++; l.steps%stepsUnasked == 0 && l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		if j < len(n.folders) && (i == files || !isBeforeFolder(n.files.at(i), n.folders[j].name)) {
			c := n.folders[j]
			j++
			l.path = append(append(l.path, c.name...), '/')
			if err := l.folder(c.node, v.enter(c.name, isFolder)); err != nil {
				return err
			}
			l.path = l.path[:here]
			continue
		}
		name := n.files.at(i)
		i++
		if !l.extension.Matches(name) {
			continue
		}
		if !settled {
			if own := v.enter(name, isFile); !own.readable {
				continue
			}
		}
		if err := l.yield(string(l.path) + name); err != nil {
			return err
		}
	}
	return nil
}
