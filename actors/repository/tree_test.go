package repository

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/identity"
)

var admin = &identity.Principal{ID: "root", Privileges: []string{string(identity.RepositoryAdmin)}}

// all lists a snapshot for an administrator.
func (s *snapshot) all(t interface{ Fatal(...any) }, extension Extension) []string {
	var got []string
	if err := s.list(context.Background(), extension, (&Rights{}).view(admin), func(p string) error { got = append(got, p); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

// model is the obvious tree: folders with their files and folders.
type model map[string]*struct{ files, folders map[string]bool }

func newModel() model {
	m := model{}
	m.add("/")
	return m
}

func (m model) add(folder string) {
	m[folder] = &struct{ files, folders map[string]bool }{map[string]bool{}, map[string]bool{}}
}

func (m model) remove(folder string) {
	for other := range m {
		if other == folder || strings.HasPrefix(other, folder+"/") {
			delete(m, other)
		}
	}
}

func (m model) list(extension string) []string {
	var got []string
	for folder, in := range m {
		for f := range in.files {
			if strings.HasSuffix(f, "."+extension) {
				got = append(got, path.Join(folder, f))
			}
		}
	}
	slices.Sort(got)
	return got
}

// TestTreeIsAsTheObviousOne replaces folders at random, and compares snapshots,
// old ones too, with a map.
func TestTreeIsAsTheObviousOne(t *testing.T) {
	name := rapid.StringMatching(`[-a./0]{1,3}`).Filter(IsName)
	rapid.Check(t, func(t *rapid.T) {
		tree, m := newTree(), newModel()
		type kept struct {
			s    *snapshot
			want []string
		}
		var snapshots []kept
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			folder := rapid.SampledFrom(slices.Sorted(maps.Keys(m))).Draw(t, "folder")
			files := rapid.SliceOfNDistinct(name, 0, 5, rapid.ID).Draw(t, "files")
			for i := range files {
				files[i] += ".x"
			}
			folders := rapid.SliceOfNDistinct(name, 0, 4, rapid.ID).Draw(t, "folders")
			var wantFresh []string
			in := m[folder]
			clear(in.files)
			for _, f := range files {
				in.files[f] = true
			}
			for f := range in.folders {
				if !slices.Contains(folders, f) {
					m.remove(join(folder, f))
					delete(in.folders, f)
				}
			}
			for _, f := range folders {
				if !in.folders[f] {
					in.folders[f] = true
					m.add(join(folder, f))
					wantFresh = append(wantFresh, f)
				}
			}
			fresh, known := tree.replace(folder, files, folders)
			require.True(t, known, "%s is not known", folder)
			slices.Sort(fresh)
			slices.Sort(wantFresh)
			require.True(t, slices.Equal(fresh, wantFresh), "fresh in %s: got %q, want %q", folder, fresh, wantFresh)
			if rapid.Bool().Draw(t, "snapshot") {
				snapshots = append(snapshots, kept{tree.snapshot(), m.list("x")})
			}
		}
		snapshots = append(snapshots, kept{tree.snapshot(), m.list("x")})
		for _, k := range snapshots {
			got := k.s.all(t, "x")
			require.True(t, slices.Equal(got, k.want), "got %q, want %q", got, k.want)
			assert.Equal(t, len(k.want), k.s.files)
		}
		assert.Equal(t, len(m)-1, tree.folders)
		_, known := tree.replace("/no/such/folder", []string{"a"}, nil)
		assert.True(t, !known && !tree.dirty, "a folder that is not there was changed")
	})
}

// TestOrderIsThatOfPaths compares both orders with that of paths.
func TestOrderIsThatOfPaths(t *testing.T) {
	name := rapid.StringMatching(`[-a./0\x{e4}]{1,4}`).Filter(IsName)
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		assert.Equal(t, cmp.Compare(a+"/", b+"/"), compareFolders(a, b), "folders %q and %q", a, b)
		assert.Equal(t, a < b+"/", isBeforeFolder(a, b), "file %q before folder %q", a, b)
	})
}

// TestReplacingTheSameChangesNothing: a walk that finds nothing costs no memory.
func TestReplacingTheSameChangesNothing(t *testing.T) {
	tree := newTree()
	tree.replace("/", []string{"b", "a"}, []string{"d", "c"})
	tree.replace("/c", []string{"e"}, nil)
	before := tree.snapshot()
	for folder, files := range map[string][]string{"/": {"a", "b"}, "/c": {"e"}} {
		var folders []string
		if folder == "/" {
			folders = []string{"c", "d"}
		}
		fresh, known := tree.replace(folder, files, folders)
		assert.True(t, known && fresh == nil && !tree.dirty, "%s: got fresh %q, dirty %v", folder, fresh, tree.dirty)
	}
	assert.Same(t, before.root, tree.root, "the tree was copied")
}

func TestListEndsWithItsCallerAndWithErrors(t *testing.T) {
	tree := newTree()
	files := make([]string, 3*stepsUnasked)
	for i := range files {
		files[i] = strings.Repeat("a", 1+i/100) + string(rune('0'+i%100)) + ".x"
	}
	tree.replace("/", nil, []string{"d"})
	tree.replace("/d", files, nil)
	s := tree.snapshot()
	stop := errors.New("enough")
	calls := 0
	err := s.list(t.Context(), "x", (&Rights{}).view(admin), func(string) error { calls++; return stop })
	assert.True(t, errors.Is(err, stop) && calls == 1, "an error of yield: got %v after %d calls", err, calls)
	ctx, cancel := context.WithCancel(t.Context())
	calls = 0
	err = s.list(ctx, "x", (&Rights{}).view(admin), func(string) error { calls++; cancel(); return nil })
	assert.True(t, errors.Is(err, context.Canceled) && calls <= stepsUnasked, "a caller who has gone: got %v after %d calls", err, calls)
}
