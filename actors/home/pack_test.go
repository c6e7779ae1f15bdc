package home

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wholeHome has a file of each kind, and some that are not published.
var wholeHome = map[string]string{
	"identity.yaml": people, "rights.yaml": "[]\n",
	"workflows/simple.yaml": simple, "workflows/simple.schema.json": shape, "workflows/readme.txt": "nothing",
	"forms/trip.yaml": trip, "workflows/.hidden.yaml": "nothing",
	"troupe.yaml": "listen: :1\n", "data/CURRENT": "", "repository/a.txt": "a",
}

const trip = "{id: trip, name: Trip, access: {roles: [clerk]}, schema: {type: object}}\n"

func load(t *testing.T, files fs.FS) *Set {
	t.Helper()
	set, err := Load(files, parser(t))
	require.NoError(t, err)
	return set
}

func TestAPackedHomeIsTheSameSet(t *testing.T) {
	dir := folder(t, wholeHome)
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "forms/trip.yaml"), old, old))
	set := load(t, os.DirFS(dir))
	archive, err := set.Pack()
	require.NoError(t, err)
	files, err := Unpack(bytes.NewReader(archive))
	require.NoError(t, err)
	var names []string
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	want := []string{"forms/trip.yaml", "identity.yaml", "rights.yaml", "workflows/simple.schema.json", "workflows/simple.yaml"}
	assert.True(t, slices.Equal(names, want), "got %q, want %q", names, want)
	assert.NoError(t, fstest.TestFS(files, want...))
	copied := load(t, files)
	assert.True(t, copied.Access.Digest == set.Access.Digest && copied.Definitions.Digest == set.Definitions.Digest && copied.TextDigest() == set.TextDigest())
	got := copied.Templates[0].Parsed.Modified
	assert.True(t, got.Equal(old), "the template is from %v, want %v", got, old)
}

func TestTheTextDigestMindsTextsAndNamesOnly(t *testing.T) {
	first := load(t, os.DirFS(folder(t, wholeHome))).TextDigest()
	dir := folder(t, wholeHome)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "forms/trip.yaml"), time.Time{}, time.Unix(1, 0)))
	assert.Equal(t, first, load(t, os.DirFS(dir)).TextDigest(), "another time is another digest")
	write(t, filepath.Join(dir, "rights.yaml"), "[] # changed\n")
	assert.NotEqual(t, first, load(t, os.DirFS(dir)).TextDigest(), "another text is the same digest")
}

// archive is a tar archive of entries. A file without a size has a few bytes.
func archive(entries ...tar.Header) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range entries {
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			h.Size = 10
		}
		_ = w.WriteHeader(&h)
		_, _ = io.WriteString(w, strings.Repeat("x", int(h.Size)))
	}
	_ = w.Close()
	return out.Bytes()
}

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }

func TestUnpackRefusesWhatIsNoHome(t *testing.T) {
	many := make([]tar.Header, maxPackedFiles+1)
	for i := range many {
		many[i] = file(fmt.Sprintf("forms/%d.yaml", i))
	}
	var large []tar.Header
	for i := range MaxPackedBytes / MaxFileBytes {
		large = append(large, tar.Header{Name: fmt.Sprintf("forms/%04d", i), Typeflag: tar.TypeReg, Size: MaxFileBytes})
	}
	whole := archive(file("identity.yaml"), file("workflows/a.yaml"))
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"absolute":         {archive(file("/identity.yaml")), "not a path"},
		"above":            {archive(file("workflows/../../a.yaml")), "not a path"},
		"twice":            {archive(file("identity.yaml"), file("./identity.yaml")), "twice"},
		"settings":         {archive(file("troupe.yaml")), "does not belong"},
		"the store":        {archive(file("data/CURRENT")), "does not belong"},
		"a mistyped name":  {archive(file("workflow/a.yaml")), "does not belong"},
		"a file as folder": {archive(file("workflows")), "does not belong"},
		"file and folder":  {archive(file("workflows/a"), file("workflows/a/b")), "a file and a folder"},
		"symbolic link":    {archive(tar.Header{Name: "identity.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "neither"},
		"hard link":        {archive(tar.Header{Name: "identity.yaml", Typeflag: tar.TypeLink, Linkname: "rights.yaml"}), "neither"},
		"device":           {archive(tar.Header{Name: "identity.yaml", Typeflag: tar.TypeChar}), "neither"},
		"a large file":     {archive(tar.Header{Name: "forms/a.yaml", Typeflag: tar.TypeReg, Size: MaxFileBytes + 1}), "larger than"},
		"too much":         {archive(large...), "more than 33554432 bytes"},
		"too many":         {archive(many...), "more than 10000 entries"},
		"cut off":          {whole[:700], "part of one"},
		"no archive":       {bytes.Repeat([]byte("text "), 500), "not a tar archive"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Unpack(bytes.NewReader(c.archive))
			assert.True(t, errors.Is(err, ErrNotPacked) && strings.Contains(err.Error(), c.want), "got %v, want ErrNotPacked with %q", err, c.want)
		})
	}
}

func TestUnpackTakesWhatTarWrites(t *testing.T) {
	dir := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir} }
	files, err := Unpack(bytes.NewReader(archive(dir("./"), file("./identity.yaml"), dir("./workflows/"), dir("./workflows/sub/"),
		file("./workflows/sub/a.json"), file("./.store"), dir("./.git/"), file("./workflows/.a.swp"))))
	require.NoError(t, err)
	_, err = fs.Stat(files, "workflows/sub/a.json")
	assert.NoError(t, err)
	for _, hidden := range []string{".store", "workflows/.a.swp"} {
		_, err := fs.Stat(files, hidden)
		assert.ErrorIs(t, err, fs.ErrNotExist, hidden)
	}
}

// FuzzUnpack: whatever comes, what is unpacked is bounded and stays in its place.
func FuzzUnpack(f *testing.F) {
	f.Add(archive(file("identity.yaml"), file("workflows/a.yaml")))
	f.Add(archive(tar.Header{Name: "forms/" + strings.Repeat("a", 200), Typeflag: tar.TypeReg, Format: tar.FormatPAX}))
	f.Add(archive(tar.Header{Name: "identity.yaml", Typeflag: tar.TypeSymlink, Linkname: "a"}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		files, err := Unpack(bytes.NewReader(archive))
		if err != nil {
			return
		}
		size := 0
		err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			top, _, _ := strings.Cut(name, "/")
			assert.False(t, name != IdentityFile && name != RightsFile && !slices.Contains(folders, top), "%q was unpacked", name)
			text, err := fs.ReadFile(files, name)
			size += len(text)
			return err
		})
		assert.True(t, err == nil && size <= MaxPackedBytes, "%d bytes, %v", size, err)
	})
}
