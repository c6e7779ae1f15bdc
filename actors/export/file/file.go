// Package file exports to files by hour, in a folder or a bucket: YYYY-MM-DD/HH-NNN.jsonl or .parquet, in UTC, by the times
// of the entries. Each batch makes new files, so rows of an hour may be in several, also of later numbers when they came late. A
// file appears under its name when it is whole, and never changes. Several writers may share a place: no two files get one
// name.
package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/actors/export"
	"troupe/actors/export/parquet"
)

const (
	batchBytes = 16 << 20
	batchFor   = 10 * time.Second
)

// Place is where files are.
type Place interface {
	// Create makes a file, as a whole or not at all; fs.ErrExist when there is one of that name.
	Create(ctx context.Context, name string, text []byte) error
	// Names lists the names of the files in a folder; none when there is no such folder.
	Names(ctx context.Context, folder string) ([]string, error)
	String() string
	Close() error
}

// Files is the target.
type Files struct {
	Place
	format Format
	next   map[string]int // by the names of hours, the number of the next file
}

// Format is how rows stand in a file: the end of its name is that of the setting.
type Format string

// The formats. A file of Parquet has all rows in one group; its columns are those of package parquet.
const (
	JSONL   Format = "jsonl"
	Parquet Format = "parquet"
)

func (f Format) encode(rows []export.Row) ([]byte, error) {
	if f == Parquet {
		return parquet.Encode(rows)
	}
	var text []byte
	for _, row := range rows {
		text = append(append(text, row.Text...), '\n')
	}
	return text, nil
}

// New returns a target that writes to a place.
func New(place Place, format Format) *Files { return &Files{place, format, map[string]int{}} }

// Gathers implements export.Target.
func (*Files) Gathers() export.Gathers { return export.Gathers{Bytes: batchBytes, For: batchFor} }

// Write implements export.Target.
func (f *Files) Write(ctx context.Context, rows []export.Row) error {
	var hours []string
	of := map[string][]export.Row{}
	for _, row := range rows {
		hour := row.At.UTC().Format("2006-01-02/15")
		if of[hour] == nil {
			hours = append(hours, hour)
		}
		of[hour] = append(of[hour], row)
	}
	for _, hour := range hours {
		text, err := f.format.encode(of[hour])
		if err == nil {
			err = f.create(ctx, hour, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const hoursMax = 100

// create makes the next file of an hour.
func (f *Files) create(ctx context.Context, hour string, text []byte) error {
	n, known := f.next[hour]
	if !known {
		names, err := f.Names(ctx, hour[:len("2006-01-02")])
		if err != nil {
			return err
		}
		if len(f.next) >= hoursMax {
			clear(f.next)
		}
		n = behind(names, hour[len("2006-01-02/"):])
	}
	for {
		err := f.Create(ctx, fmt.Sprintf("%s-%03d.%s", hour, n, f.format), text)
		if !errors.Is(err, fs.ErrExist) {
			if err == nil {
				f.next[hour] = n + 1
			}
			return err
		}
		n++ // another writer's
	}
}

// behind is the number behind those of the files of an hour.
func behind(names []string, hour string) (n int) {
	for name := range slices.Values(names) {
		if number, ok := strings.CutPrefix(name, hour+"-"); ok {
			number, _, _ = strings.Cut(number, ".")
			if has, err := strconv.Atoi(number); err == nil {
				n = max(n, has+1)
			}
		}
	}
	return n
}
