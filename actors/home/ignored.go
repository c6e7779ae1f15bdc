package home

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"troupe/statemachine/document"
)

// isSource reports whether a file can be a definition or template by its name: hidden
// files and JSON Schemas cannot.
func isSource(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".schema.json") {
		return false
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// ignoredFiles warns of files that could be definitions or templates and that are not
// read because they stand in a folder below. referred are files that others refer to.
func ignoredFiles(dir string, referred map[string]bool) (warnings document.Faults) {
	for _, folder := range folders {
		top := filepath.Join(dir, folder)
		// NB: what cannot be read here is not read by Load either.
		_ = filepath.WalkDir(top+"/.", func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			rel, err := filepath.Rel(top, file)
			if err != nil || rel == "." {
				return err
			}
			if d.IsDir() {
				if strings.HasPrefix(d.Name(), ".") {
					return fs.SkipDir
				}
				return nil
			}
			shown := path.Join(folder, filepath.ToSlash(rel))
			if filepath.Dir(rel) != "." && isSource(d.Name()) && !referred[shown] {
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

// references are the files that definitions and templates refer to, as paths in the
// home.
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
