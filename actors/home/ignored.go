package home

import (
	"io/fs"
	"path"
	"strings"

	"troupe/statemachine/document"
)

// isSource reports whether a file can be a definition or template by its name: hidden files and JSON Schemas cannot.
func isSource(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".schema.json") {
		return false
	}
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// ignoredFiles warns of files that look like sources but stand in a folder below. referred are files that others refer
// to.
func ignoredFiles(files fs.FS, referred map[string]bool) (warnings document.Faults) {
	for _, folder := range folders {
		// NB: what cannot be read here is not read by Load either.
		_ = fs.WalkDir(files, folder, func(shown string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || shown == folder:
				return nil
			case d.IsDir() && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir
			case !d.IsDir() && path.Dir(shown) != folder && isSource(d.Name()) && !referred[shown]:
				warnings = append(warnings, document.Fault{
					File: shown, Reason: "is not read, because it stands in a folder below " + folder,
					Suggestion: "move it to " + folder,
				})
			}
			return nil
		})
	}
	return warnings
}

func (d *Definitions) references() map[string]bool {
	all := map[string]bool{}
	add := func(file string, refs map[string][]byte) {
		for ref := range refs {
			all[path.Join(path.Dir(file), ref)] = true
		}
	}
	for _, w := range d.Workflows {
		add(w.File, w.Refs)
	}
	for _, t := range d.Templates {
		add(t.File, t.Refs)
	}
	return all
}
