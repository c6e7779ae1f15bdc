package repository_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/repository/disk"
)

// grid is a repository that is computed: folders in folders with files in them.
type grid struct{ outer, inner, files int }

var million = grid{100, 100, 100}

var gridExtensions = []string{"rml", "docx", "csv.xlsx", "pdf", "png", "txt", "json", "xml", "svg", "md"}

func (g grid) size() int { return g.outer * g.inner * g.files }

// name is the name of a file, of 22 bytes on average.
func (g grid) name(i int) string {
	return fmt.Sprintf("report of month %03d.%s", i, gridExtensions[i%len(gridExtensions)])
}

// List implements repository.Source.
func (g grid) List(_ context.Context, folder string) (*repository.Listing, error) {
	l := &repository.Listing{}
	switch strings.Count(folder, "/") {
	case 1:
		if folder == "/" {
			for i := range g.outer {
				l.Folders = append(l.Folders, fmt.Sprintf("department %03d", i))
			}
			break
		}
		for i := range g.inner {
			l.Folders = append(l.Folders, fmt.Sprintf("project %03d", i))
		}
	case 2:
		for i := range g.files {
			l.Files = append(l.Files, g.name(i))
		}
	}
	return l, nil
}

// Open implements repository.Source.
func (grid) Open(context.Context, string) (*repository.File, error) { return nil, fs.ErrNotExist }

// Watch implements repository.Source.
func (grid) Watch(ctx context.Context, _ func(repository.Change)) error {
	<-ctx.Done()
	return nil
}

// write makes the same on a disk.
func (g grid) write(b *testing.B, dir string) {
	b.Helper()
	for i := range g.outer {
		for j := range g.inner {
			folder := filepath.Join(dir, fmt.Sprintf("department %03d", i), fmt.Sprintf("project %03d", j))
			if err := os.MkdirAll(folder, 0o755); err != nil {
				b.Fatal(err)
			}
			for k := range g.files {
				f, err := os.Create(filepath.Join(folder, g.name(k)))
				if err != nil {
					b.Fatal(err)
				}
				_ = f.Close()
			}
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func startBench(b *testing.B, source repository.Source) (*repository.Service, func()) {
	b.Helper()
	system := actors.NewSystem(zerolog.Nop())
	s := repository.Start(repository.Options{System: system, Source: source, Log: zerolog.Nop(), WaitMax: time.Minute})
	return s, func() {
		if err := errors.Join(s.Stop(context.Background()), system.Stop(context.Background())); err != nil {
			b.Error(err)
		}
	}
}

func count(b *testing.B, s *repository.Service, caller *identity.Principal, extension string) int {
	n := 0
	if err := s.List(b.Context(), caller, extension, func(string) error { n++; return nil }); err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkIndexMillion is the memory that the index of a million files takes,
// and the time of a walk without a disk.
func BenchmarkIndexMillion(b *testing.B) {
	before := heap()
	for range b.N {
		s, stop := startBench(b, million)
		if n := count(b, s, admin, "rml"); n != million.size()/10 {
			b.Fatalf("got %d files", n)
		}
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/float64(million.size()), "bytes/file")
		stop()
		b.StartTimer()
	}
}

// BenchmarkListMillion lists a million files.
func BenchmarkListMillion(b *testing.B) {
	s, stop := startBench(b, million)
	defer stop()
	text := "- {path: /, readers: ['*']}\n"
	for i := range 100 {
		text += fmt.Sprintf("- {path: '/department %03d/project %03d', readers: [role:manager]}\n", i, i)
	}
	s.SetRights(rights(b, text))
	for _, c := range []struct {
		name, extension string
		caller          *identity.Principal
		want            int
	}{
		{"tenth/administrator", "rml", admin, million.size() / 10},
		{"tenth/user", "rml", john, million.size()/10 - 100*10},
		{"none", "none", admin, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if n := count(b, s, c.caller, c.extension); n != c.want {
					b.Fatalf("got %d files, want %d", n, c.want)
				}
			}
		})
	}
}

// BenchmarkDisk indexes files of a disk: TROUPE_FILES of them (default 100,000),
// in folders of a hundred. The first walk also begins to watch each folder.
func BenchmarkDisk(b *testing.B) {
	files, err := strconv.Atoi(os.Getenv("TROUPE_FILES"))
	if err != nil {
		files = 100_000
	}
	g := grid{files / 10_000, 100, 100}
	dir := b.TempDir()
	g.write(b, dir)
	b.ResetTimer()
	for range b.N {
		d, err := disk.Open(disk.Options{Dir: dir, Log: zerolog.Nop()})
		if err != nil {
			b.Fatal(err)
		}
		s, stop := startBench(b, d)
		if n := count(b, s, admin, "rml"); n != g.size()/10 {
			b.Fatalf("got %d files", n)
		}
		b.StopTimer()
		begun := time.Now()
		if err := os.WriteFile(filepath.Join(dir, "department 000", "project 000", "new.new"), nil, 0o644); err != nil {
			b.Fatal(err)
		}
		for count(b, s, admin, "new") == 0 {
			<-time.After(time.Millisecond)
		}
		b.ReportMetric(float64(time.Since(begun).Milliseconds()), "ms-until-seen")
		b.ReportMetric(float64(s.Metrics().Last.Unwatched), "unwatched")
		if err := os.Remove(filepath.Join(dir, "department 000", "project 000", "new.new")); err != nil {
			b.Fatal(err)
		}
		stop()
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
