package persistence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"troupe/persistence/internal/engine"
	"troupe/persistence/internal/file"
)

// doFiles are the words about the files on the disk.
func (s *story) doFiles(word string, args []string, rest string) string {
	switch word {
	case "files":
		before := s.files
		s.files = s.disk.String()
		switch before {
		case "":
			return ""
		case s.files:
			return "as before"
		}
		return "changed"
	case "holds":
		_, err := s.disk.Stat(rest)
		return fmt.Sprint(err == nil)
	case "list":
		names, err := s.disk.List(rest)
		if err != nil {
			return "none"
		}
		slices.Sort(names)
		return fmt.Sprintf("%q", names)
	case "put", "seal":
		text, err := strconv.Unquote(strings.TrimSpace(strings.TrimPrefix(rest, args[0])))
		must(s.t, err)
		if word == "seal" {
			text = string(file.Seal([]byte(text)))
		}
		must(s.t, s.disk.MkdirAll(s.disk.PathDir(args[0]), 0o700))
		putFile(s.t, s.disk, "../"+args[0], text)
	case "zero": // all bytes of a file
		data, err := file.Read(s.disk, rest)
		must(s.t, err)
		putFile(s.t, s.disk, "../"+rest, string(make([]byte, len(data))))
	case "flush":
		return said(engine.Pebble(s.store.db.Load()).Flush())
	case "compact":
		return said(engine.Pebble(s.store.db.Load()).Compact(s.t.Context(), []byte{0}, []byte{0xFF, 0xFF, 0xFF}, false))
	case "tables":
		return s.lookAtTables()
	case "remove":
		must(s.t, s.disk.Remove(rest))
	case "rename":
		must(s.t, s.disk.Rename(args[0], args[1]))
	case "mkdir":
		must(s.t, s.disk.MkdirAll(rest, 0o700))
	case "ids":
		if own, wanted := idFile(s.t, s.disk, "db/ID"), idFile(s.t, s.disk, "store-id"); own != wanted || own == "" {
			return fmt.Sprintf("%q and %q", own, wanted)
		}
		return "the same"
	case "crash": // of what was not synced nothing is left
		left := s.disk.CrashClone(vfs.CrashCloneCfg{})
		s.heal()
		_ = s.store.Close() // the process would be gone
		s.disk, s.closed = left, true
		s.options.FS = errorfs.Wrap(left, s.faults)
	default:
		s.t.Fatalf("there is no word %q", word)
	}
	return ""
}

// lookAtTables counts the tables that were there at the first look, and the others.
func (s *story) lookAtTables() string {
	names, err := s.disk.List("db")
	must(s.t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".sst") })
	if s.tables == nil {
		s.tables = names
	}
	old := 0
	for _, name := range names {
		if slices.Contains(s.tables, name) {
			old++
		}
	}
	return fmt.Sprintf("%d old, %d new", old, len(names)-old)
}
