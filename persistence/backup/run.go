package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// moments are the backups of a target, by their names, the oldest first.
func moments(names map[string]int64) (found []string) {
	for name := range names {
		if _, ok := parseMoment(name); ok {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func readIndex(ctx context.Context, t Target, name string) (*Index, error) {
	content, err := t.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", name, t, err)
	}
	index, err := parseIndex(name+" in "+t.String(), content)
	return index, errors.Join(err, content.Close())
}

// index sums up all files. A table whose sum is known, by what else is known of it, is not read.
func (c *captured) index(r *Run, known map[File]string) (*Index, error) {
	i := &Index{Format: format, Moment: c.moment, Program: r.Program, Counts: c.counts}
	for n := range c.files {
		f := &c.files[n]
		if f.SHA256 = known[f.File]; f.SHA256 == "" {
			if err := f.sumUp(); err != nil {
				return nil, err
			}
		}
		i.Files = append(i.Files, f.File)
	}
	return i, nil
}

// progress returns what tells of each file that was looked at.
func (r *Run) progress(i *Index) func(*File) {
	done, total := int64(0), i.Bytes()
	return func(f *File) {
		if done += f.Bytes; r.Progress != nil {
			r.Progress(done, total)
		}
	}
}

// To adds a backup to a target, and removes those that were replaced by a newer one longer than keep ago (0: none).
func (r *Run) To(ctx context.Context, t Target, keep time.Duration) (*Report, error) {
	release, err := t.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	c, err := r.capture(ctx)
	if err != nil {
		return nil, err
	}
	defer c.done()
	index, copied, err := c.add(ctx, r, t)
	if err != nil {
		return nil, fmt.Errorf("backup to %s: %w", t, c.explain(err))
	}
	report := &Report{Index: index, Copied: copied, Left: c.left}
	report.Removed, err = prune(ctx, t, c.moment.Add(-keep), keep > 0)
	if err != nil {
		err = fmt.Errorf("the backup was written, but old ones in %s cannot be removed: %w", t, err)
	}
	return report, err
}

// add gives the target what it does not have, reads that again, and writes the index last.
func (c *captured) add(ctx context.Context, r *Run, t Target) (index *Index, copied int64, err error) {
	names, err := t.List(ctx)
	if err != nil {
		return nil, 0, err
	}
	known, err := c.follow(ctx, t, names)
	if err == nil {
		index, err = c.index(r, known)
	}
	if err != nil {
		return nil, 0, err
	}
	b, progress := &Backup{index, stored{t}}, r.progress(index)
	for n := range c.files {
		f := &c.files[n]
		if size, ok := names[f.object()]; !ok || size != f.Bytes {
			err := f.read(ctx, func(content io.Reader) error { return t.Put(ctx, f.object(), f.Bytes, content) })
			if err == nil {
				err = b.visit(ctx, &f.File, drain)
			}
			if err != nil {
				return nil, 0, err
			}
			names[f.object()], copied = f.Bytes, copied+f.Bytes
		}
		progress(&f.File)
	}
	text, err := index.encode()
	if err == nil {
		err = t.Put(ctx, index.name(), int64(len(text)), bytes.NewReader(text))
	}
	if err == nil {
		_, err = readIndex(ctx, t, index.name())
	}
	return index, copied, err
}

// follow reads the newest backup that a target has: a table that is in it has the sum that it had.
func (c *captured) follow(ctx context.Context, t Target, names map[string]int64) (known map[File]string, err error) {
	all := moments(names)
	if len(all) == 0 {
		return nil, nil
	}
	last, err := readIndex(ctx, t, all[len(all)-1])
	if errors.Is(err, ErrDamaged) {
		return nil, nil // all tables are read again, and prune says it
	}
	if err != nil {
		return nil, err
	}
	if !c.moment.After(last.Moment) {
		return nil, fmt.Errorf("the clock is before the newest backup, of %s: wait until then, or use another target", shownTime(last.Moment))
	}
	known = map[File]string{}
	for _, f := range last.Files {
		sum := f.SHA256
		if f.SHA256 = ""; f.Modified != 0 {
			known[f] = sum
		}
		if f.Path == idFile && sum != c.idSum {
			return nil, errors.New("it has backups of another store: use a target of its own for each")
		}
	}
	return known, nil
}

// prune removes the backups that were replaced before a time, and then everything that no backup names.
func prune(ctx context.Context, t Target, before time.Time, old bool) (removed int, err error) {
	names, err := t.List(ctx)
	if err != nil {
		return 0, err
	}
	all := moments(names)
	named := map[string]bool{}
	for n, name := range all {
		if next, _ := parseMoment(all[min(n+1, len(all)-1)]); old && n+1 < len(all) && next.Before(before) {
			if err := t.Remove(ctx, name); err != nil {
				return removed, err
			}
			removed++
			continue
		}
		index, err := readIndex(ctx, t, name)
		if err != nil {
			return removed, err // NB: nothing is removed while it is not known what it names
		}
		for _, f := range index.Files {
			named[f.object()] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(name, objectFolder) && !named[name] {
			if err := t.Remove(ctx, name); err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}

func shownTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
