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
	text, err := io.ReadAll(content)
	if err = errors.Join(err, content.Close()); err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", name, t, err)
	}
	return parseIndex(name, text)
}

// To adds a backup to a target, and removes those that were replaced by a newer one longer than keep ago (0: none).
func (r *Run) To(ctx context.Context, t Target, keep time.Duration) (*Report, error) {
	release, err := t.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	names, err := t.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", t, err)
	}
	c, err := r.capture(ctx)
	if err != nil {
		return nil, err
	}
	defer c.done()
	i := &increment{Run: r, to: t, names: names, captured: c}
	report, err := i.write(ctx)
	if err != nil {
		return nil, fmt.Errorf("backup to %s: %w", t, err)
	}
	report.Removed, err = prune(ctx, t, c.moment.Add(-keep), keep > 0)
	if err != nil {
		return report, fmt.Errorf("the backup was written, but old ones in %s cannot be removed: %w", t, err)
	}
	return report, nil
}

// increment is one run into a target.
type increment struct {
	*Run
	*captured
	to     Target
	names  map[string]int64 // what the target has
	known  map[File]string  // the sums of tables in the last backup, by what else is known of them
	copied int64
}

func (i *increment) write(ctx context.Context) (*Report, error) {
	if err := i.continueLast(ctx); err != nil {
		return nil, err
	}
	index := &Index{Format: format, Moment: i.moment, Program: i.Program, Counts: i.counts}
	var done, total int64
	for _, f := range i.files {
		total += f.Bytes
	}
	for n := range i.files {
		f := &i.files[n]
		if err := i.copy(ctx, f); err != nil {
			return nil, err
		}
		index.Files = append(index.Files, f.File)
		if done += f.Bytes; i.Progress != nil {
			i.Progress(done, total)
		}
	}
	text, err := index.encode()
	if err == nil {
		err = i.to.Put(ctx, index.name(), int64(len(text)), bytes.NewReader(text))
	}
	if err == nil {
		_, err = readIndex(ctx, i.to, index.name())
	}
	if err != nil {
		return nil, err
	}
	return &Report{Index: index, Copied: i.copied, Left: i.left}, nil
}

// continueLast reads the newest backup. A table that it has need not be read again.
func (i *increment) continueLast(ctx context.Context) error {
	i.known = map[File]string{}
	all := moments(i.names)
	if len(all) == 0 {
		return nil
	}
	last, err := readIndex(ctx, i.to, all[len(all)-1])
	if errors.Is(err, ErrDamaged) {
		return nil // all tables are read again, and prune says it
	}
	if err != nil {
		return err
	}
	if !i.moment.After(last.Moment) {
		return fmt.Errorf("the clock is behind the newest backup, of %s: wait until then, or use another target", shownTime(last.Moment))
	}
	id, err := i.sumOfID()
	if err != nil {
		return err
	}
	if last.idSum() != id {
		return errors.New("it has backups of another store: use a target of its own for each")
	}
	for _, f := range last.Files {
		if f.Modified != 0 {
			sum := f.SHA256
			f.SHA256 = ""
			i.known[f] = sum
		}
	}
	return nil
}

func (i *increment) sumOfID() (string, error) {
	for n := range i.files {
		if f := &i.files[n]; f.Path == DataFolder+"/ID" {
			return sumOf(f)
		}
	}
	return "", nil
}

// sumOf reads a file once, and sets its size to what was read.
func sumOf(f *capturedFile) (string, error) {
	content, err := f.open()
	if err != nil {
		return "", err
	}
	t := newTally()
	_, err = io.Copy(t, content)
	f.Bytes = t.bytes
	return t.sum(), errors.Join(err, content.Close())
}

// copy gives the target the content of a file, unless it has it, and reads it again.
func (i *increment) copy(ctx context.Context, f *capturedFile) error {
	sum, ok := i.known[f.File]
	if !ok {
		var err error
		if sum, err = sumOf(f); err != nil {
			return err
		}
	}
	f.SHA256 = sum
	if size, ok := i.names[f.object()]; ok && size == f.Bytes {
		return ctx.Err()
	}
	content, err := f.open()
	if err != nil {
		return err
	}
	t := newTally()
	err = i.to.Put(ctx, f.object(), f.Bytes, io.TeeReader(content, t))
	if err = errors.Join(err, content.Close()); err != nil {
		return err
	}
	if t.check(&f.File) != nil {
		return fmt.Errorf("%s has changed while it was copied: try again", f.Path)
	}
	i.names[f.object()], i.copied = f.Bytes, i.copied+f.Bytes
	return unpackFile(ctx, i.to, &f.File, io.Discard)
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
		if n+1 < len(all) {
			if next, _ := parseMoment(all[n+1]); old && next.Before(before) {
				if err := t.Remove(ctx, name); err != nil {
					return removed, err
				}
				removed++
				continue
			}
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
		if strings.HasPrefix(name, "objects/") && !named[name] {
			if err := t.Remove(ctx, name); err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}

func shownTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
