// Package home reads the text files of a home folder, which are the truth for
// definitions, templates, roles, users and rights (home.md), and keeps them in step
// with the running service.
//
// A set of files is checked as a whole before anything of it is used. A faulty
// set is refused with file, line and reason, and the one before stays in use.
package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/workflow"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// Names inside a home folder.
const (
	IdentityFile     = "identity.yaml"
	RightsFile       = "rights.yaml"
	WorkflowsFolder  = "workflows"
	FormsFolder      = "forms"
	ChecklistsFolder = "checklists"
	// RepositoryFolder has files of any kind, which are not read here.
	RepositoryFolder = "repository"
)

// folders are those whose files are read, in the order of Load.
var folders = []string{WorkflowsFolder, FormsFolder, ChecklistsFolder}

// maxFileBytes bounds one text file.
const maxFileBytes = 1 << 20

// Set is everything that the text files of a home say, checked together.
type Set struct {
	Directory *identity.Directory
	Rights    *repository.Rights
	Workflows []workflow.Source
	Templates []formportal.TemplateSource
}

// Load reads and checks the home's text files. parser brings the expression
// language; Load adds the roles of identity.yaml to it.
//
// The error is document.Faults when the files can be read and are wrong. When
// identity.yaml is right, the returned set has its directory even then, and when
// rights.yaml is right as well its rights, so that a caller can go on with
// definitions that were accepted before.
func Load(dir string, parser *statemachine.Parser) (*Set, error) {
	set := &Set{}
	var faults document.Faults
	text, _, err := readFile(filepath.Join(dir, IdentityFile))
	if err != nil {
		return set, fmt.Errorf("read home: %w", err)
	}
	set.Directory, err = identity.ParseDirectory(IdentityFile, text)
	if err = collect(&faults, err); err != nil {
		return set, err
	}
	set.Rights, err = loadRights(dir, set.Directory)
	if err = collect(&faults, err); err != nil {
		return set, err
	}
	options := statemachine.ParserOptions{HasPrivilege: isPrivilege, Privileges: privileges()}
	if set.Directory != nil {
		options.HasRole = func(name string) bool { return set.Directory.HasRole(identity.RoleID(name)) }
		for _, id := range set.Directory.RoleIDs() {
			options.Roles = append(options.Roles, string(id))
		}
	}
	wrong, whole, err := loadDefinitions(set, dir, parser.With(options))
	if err != nil {
		return set, err
	}
	faults = append(faults, wrong...)
	if wrong, err = loadTemplates(set, dir, templatesMayName(set, options, whole)); err != nil {
		return set, err
	}
	faults = append(faults, wrong...)
	if len(faults) > 0 {
		return set, faults
	}
	return set, nil
}

// loadRights reads rights.yaml. One that is missing is empty. directory is nil
// when it has faults: then there are no rights, but those of the file's own.
func loadRights(dir string, directory *identity.Directory) (*repository.Rights, error) {
	text, _, err := readFile(filepath.Join(dir, RightsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, document.Faults{{File: RightsFile, Reason: err.Error()}}
	}
	rights, err := repository.ParseRights(RightsFile, text, directory)
	if directory == nil {
		return nil, err
	}
	return rights, err
}

// loadDefinitions reads the definitions into the set. whole: none of them is
// missing there because of its faults.
func loadDefinitions(set *Set, dir string, parser *statemachine.Parser) (faults document.Faults, whole bool, err error) {
	files, err := namesIn(dir, WorkflowsFolder)
	if err := collect(&faults, err); err != nil {
		return nil, false, err
	}
	for _, name := range files {
		source, err := loadDefinition(dir, name, parser)
		if err := collect(&faults, err); err != nil {
			return nil, false, err
		}
		if err == nil {
			set.Workflows = append(set.Workflows, *source)
		}
	}
	whole = len(faults) == 0
	return append(faults, twins(set.Workflows)...), whole, nil
}

// twins finds files with the same workflow and version as one before.
func twins(sources []workflow.Source) document.Faults {
	type version struct {
		id     statemachine.WorkflowID
		number uint64
	}
	var faults document.Faults
	first := map[version]string{}
	for _, s := range sources {
		v := version{s.Parsed.ID, s.Parsed.Version}
		if other, twice := first[v]; twice {
			faults = append(faults, document.Fault{
				File: s.File, Line: 1, Column: 1,
				Reason: fmt.Sprintf("workflow %s version %d stands in %s as well", v.id, v.number, other),
			})
			continue
		}
		first[v] = s.File
	}
	return faults
}

// collect moves faults of a file to all; other errors are returned.
func collect(all *document.Faults, err error) error {
	var faults document.Faults
	if errors.As(err, &faults) {
		*all = append(*all, faults...)
		return nil
	}
	return err
}

func isPrivilege(name string) bool { return slices.Contains(privileges(), name) }

func privileges() []string {
	var out []string
	for _, p := range identity.Privileges() {
		out = append(out, string(p))
	}
	return out
}

// namesIn lists the files of a folder that are definitions or templates, in
// order. Hidden files and JSON Schemas, which those refer to, are none. A folder
// that is not there has none.
func namesIn(dir, folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, document.Faults{{File: folder, Reason: fmt.Sprintf("the folder cannot be read: %v", err)}}
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".schema.json") {
			continue
		}
		switch filepath.Ext(name) {
		case ".yaml", ".yml", ".json":
			names = append(names, name)
		}
	}
	return names, nil
}

func loadDefinition(dir, name string, parser *statemachine.Parser) (*workflow.Source, error) {
	folder := filepath.Join(dir, WorkflowsFolder)
	shown := WorkflowsFolder + "/" + name
	text, _, err := readFile(filepath.Join(folder, name))
	if err != nil {
		return nil, document.Faults{{File: shown, Line: 1, Reason: err.Error()}}
	}
	source := &workflow.Source{File: shown, Text: text, Refs: map[string][]byte{}}
	parsed, err := parser.Parse(statemachine.Source{File: shown, Text: text, Read: func(ref string) ([]byte, error) {
		// The parser has made sure that ref stays below the folder.
		b, _, err := readFile(filepath.Join(folder, filepath.FromSlash(ref)))
		if err == nil {
			source.Refs[ref] = b
		}
		return b, err
	}})
	if err != nil {
		return nil, err
	}
	source.Parsed = parsed.Definition
	return source, nil
}

// readFile reads a regular file of bounded size, and tells when it was changed.
func readFile(name string) (text []byte, modified time.Time, err error) {
	st, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case !st.Mode().IsRegular():
		return nil, time.Time{}, fmt.Errorf("%s is not a regular file", filepath.Base(name))
	case st.Size() > maxFileBytes:
		return nil, time.Time{}, fmt.Errorf("%s is larger than %d bytes", filepath.Base(name), maxFileBytes)
	}
	// NB: the time is older than the text when the file changes in between; then
	// the watcher has everything read again.
	text, err = os.ReadFile(name)
	return text, st.ModTime(), err
}
