package home

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// TestLoad plays testdata/load: a home's files, and what loading them gives or what is wrong with them. "base" says what
// each home after it has; "load" says the files that differ. Each begins with a line "-- NAME", that may go on with "gone", "pipe" or "pad" (it is
// padded to one byte above the limit).
func TestLoad(t *testing.T) {
	datadriven.Walk(t, "testdata/load", func(t *testing.T, path string) {
		base := map[string][2]string{}
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			dir := t.TempDir()
			switch cmd.Cmd {
			case "base":
				base = filesOf(cmd.Input)
				return ""
			case "load", "people":
			default:
				t.Fatalf("unknown command %q", cmd.Cmd)
			}
			all := maps.Clone(base)
			maps.Copy(all, filesOf(cmd.Input))
			for name, file := range all {
				switch kind, text := file[0], file[1]; kind {
				case "":
					write(t, filepath.Join(dir, name), text)
				case "pad":
					write(t, filepath.Join(dir, name), text+"# "+strings.Repeat("x", MaxFileBytes-len(text)-1))
				case "pipe":
					require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
					require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
				}
			}
			if cmd.Cmd == "people" {
				d, err := LoadDirectory(os.DirFS(dir))
				_, accessErr := LoadAccess(os.DirFS(dir))
				return fmt.Sprintf("clerk is a role: %t, %v\nwith the rights: %v\n", d.HasRole("clerk"), err, accessErr)
			}
			return loaded(t, dir)
		})
	})
}

func filesOf(text string) map[string][2]string {
	files := map[string][2]string{}
	for part := range strings.SplitSeq("\n"+text, "\n-- ") {
		if head, text, _ := strings.Cut(part, "\n"); head != "" {
			name, kind, _ := strings.Cut(head, " ")
			files[name] = [2]string{kind, text + "\n"}
		}
	}
	return files
}

func loaded(t *testing.T, dir string) string {
	var out strings.Builder
	set, err := Load(os.DirFS(dir), parser(t))
	var faults document.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			fmt.Fprintln(&out, f)
		}
		if set.Directory == nil {
			fmt.Fprintln(&out, "no users")
		}
		if set.Rights == nil {
			fmt.Fprintln(&out, "no rights")
		}
	} else if err != nil {
		fmt.Fprintf(&out, "error: %v\n", err)
		return out.String()
	}
	for _, w := range set.Warnings {
		fmt.Fprintln(&out, "warning:", w)
	}
	if err != nil {
		return out.String()
	}
	for _, w := range set.Workflows {
		fmt.Fprintf(&out, "workflow %s %d %s%s\n", w.Parsed.ID, w.Parsed.Version, w.File, refs(w.Refs))
	}
	for _, f := range set.Templates {
		text, err := os.ReadFile(filepath.Join(dir, f.File))
		require.NoError(t, err)
		assert.Equal(t, string(text), string(f.Text), f.File)
		fmt.Fprintf(&out, "%s %s %s%s\n", f.Parsed.Kind, f.Parsed.ID, f.File, refs(f.Refs))
		if f.Parsed.Schema != nil {
			fmt.Fprintf(&out, "  of {\"a\":1}: %v\n", f.Parsed.Check(data.Value(`{"a":1}`)))
		}
	}
	ann := set.Directory.Principal("ann")
	var reads []string
	for _, path := range []string{"/a.rml", "/desk/a.rml", "/Temp/a.rml", "/User/ann/a.rml"} {
		if set.Rights.Reads(ann, path) {
			reads = append(reads, path)
		}
	}
	fmt.Fprintf(&out, "ann reads %s by %d rules\n", strings.Join(reads, " "), set.Rights.Len())
	return out.String()
}

func refs(all map[string][]byte) (out string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out += " " + name + "=" + strings.TrimSpace(string(all[name]))
	}
	return out
}

// TestTemplatesKnowWhenTheyWereModified: to the millisecond.
func TestTemplatesKnowWhenTheyWereModified(t *testing.T) {
	dir := folder(t, map[string]string{"identity.yaml": people, "checklists/tidy.yaml": "id: tidy\naccess: {roles: [clerk]}\nitems: [{id: desk, required: true}]\n"})
	changed := time.Date(2026, 2, 3, 4, 5, 6, 789_654_321, time.UTC)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "checklists", "tidy.yaml"), changed, changed))
	assert.Equal(t, changed.Truncate(time.Millisecond), load(t, os.DirFS(dir)).Templates[0].Parsed.Modified.UTC())
}

func TestLoadWithoutAHome(t *testing.T) {
	_, err := Load(os.DirFS(filepath.Join(t.TempDir(), "nowhere")), parser(t))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
