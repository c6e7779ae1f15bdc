// Package home reads the text files of a home folder and tells the running service when they change.
//
// There are two sets: who may do what ([Access]), and what there is to do ([Definitions]). Each is checked as a whole
// before anything of it is used. A faulty set is refused with file, line and reason, and the set before stays in use.
// The two sets do not wait for each other (cmd/troupe/HOME.md, "Reloading").
package home

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Names inside a home folder.
const (
	IdentityFile     = "identity.yaml"
	RightsFile       = "rights.yaml"
	WorkflowsFolder  = "workflows"
	FormsFolder      = "forms"
	ChecklistsFolder = "checklists"
	RepositoryFolder = "repository" // RepositoryFolder has files of any kind, which are not read here
	TestsFolder      = "tests"      // TestsFolder is not a part of what a server reads; see LoadTests
)

var folders = []string{WorkflowsFolder, FormsFolder, ChecklistsFolder}

// MaxFileBytes bounds one text file.
const MaxFileBytes = 1 << 20

// Access is who there is and who may read which files: identity.yaml and rights.yaml.
type Access struct {
	Directory *identity.Directory // nil when identity.yaml cannot be used
	Rights    *repository.Rights  // nil when rights.yaml cannot be used
	Digest    Digest              // Digest differs when the files have another content

	identity, rights []byte // the texts; rights is nil when there is no such file
}

// Digest stands for the content of files.
type Digest [sha256.Size]byte

func add[T string | []byte](h hash.Hash, text T) {
	_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(text))))
	_, _ = h.Write([]byte(text))
}

func addFile(h hash.Hash, name string, text []byte, refs map[string][]byte) {
	add(h, name)
	add(h, text)
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		add(h, ref)
		add(h, refs[ref])
	}
}

// Definitions are the workflows with the templates of forms and checklists.
type Definitions struct {
	Workflows []catalog.Source
	Templates []formportal.TemplateSource
	Warnings  document.Faults // what the author of a definition or template should look at although it is allowed
	// Digest differs when the files have another content, or a template another time of modification: lists show that.
	Digest Digest
}

// Set is everything that the text files of a home say, checked together.
type Set struct {
	Access
	Definitions
}

// Load reads and checks all text files of the home, which is a folder (os.DirFS) or what [Unpack] returned; see
// [LoadAccess] and [LoadDefinitions]. The set has what could be used even when there are faults.
func Load(files fs.FS, parser *statemachine.Parser) (*Set, error) {
	set := &Set{}
	var faults document.Faults
	var err error
	set.Access, err = LoadAccess(files)
	if err = collect(&faults, err); err != nil {
		return set, err
	}
	options := mayName(set.Directory)
	if roles, known := rolesIn(set.identity); set.Directory == nil && known {
		options.Roles, options.HasRole = roles, func(name string) bool { return slices.Contains(roles, name) }
	}
	set.Definitions, err = definitions(files, parser.With(options), options, set.Directory)
	if err = collect(&faults, err); err != nil {
		return set, err
	}
	if len(faults) > 0 {
		return set, faults
	}
	set.Warnings = append(set.Warnings, set.Rights.Warnings()...)
	return set, nil
}

// LoadDirectory reads and checks identity.yaml alone. The error is as that of [LoadAccess].
func LoadDirectory(files fs.FS) (*identity.Directory, error) {
	directory, _, err := loadDirectory(files)
	return directory, err
}

func loadDirectory(files fs.FS) (directory *identity.Directory, text []byte, err error) {
	text, _, err = readFile(files, IdentityFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read home: %w", err)
	}
	directory, err = identity.ParseDirectory(IdentityFile, text)
	return directory, text, err
}

// LoadAccess reads and checks identity.yaml and rights.yaml. It returns what one of them says even when the other has
// faults, so that a user who was disabled does not stay in.
func LoadAccess(files fs.FS) (Access, error) {
	var access Access
	var faults document.Faults
	var err error
	access.Directory, access.identity, err = loadDirectory(files)
	if err = collect(&faults, err); err != nil {
		return access, err
	}
	digest := sha256.New()
	add(digest, access.identity)
	access.Rights, access.rights, err = loadRights(files, access.Directory)
	add(digest, access.rights)
	digest.Sum(access.Digest[:0])
	if err = collect(&faults, err); err != nil {
		return access, err
	}
	if len(faults) > 0 {
		return access, faults
	}
	return access, nil
}

// LoadDefinitions reads and checks the definitions and templates. parser brings the expression language; directory has
// the roles that they may name, nil: all are taken. The error is document.Faults when the files can be read and are
// wrong; what is right is returned even then.
func LoadDefinitions(files fs.FS, parser *statemachine.Parser, directory *identity.Directory) (Definitions, error) {
	options := mayName(directory)
	return definitions(files, parser.With(options), options, directory)
}

func definitions(files fs.FS, parser *statemachine.Parser, options statemachine.ParserOptions, directory *identity.Directory) (Definitions, error) {
	var set Definitions
	faults, unread, err := loadDefinitions(&set, files, parser)
	if err != nil {
		return set, err
	}
	wrong, err := loadTemplates(&set, files, templatesMayName(&set, options, unread))
	if err != nil {
		return set, err
	}
	faults = append(append(faults, wrong...), checkTaskForms(&set, len(wrong) == 0)...)
	if len(faults) > 0 {
		return set, faults
	}
	set.Warnings = append(set.Warnings, ignoredFiles(files, set.references())...)
	set.Warnings = append(set.Warnings, set.unknownChildren()...)
	if directory != nil {
		set.Warnings = append(set.Warnings, set.unknownPeople(directory)...)
	}
	set.Digest = set.digest()
	return set, nil
}

func (d *Definitions) unknownChildren() (warnings document.Faults) {
	known := map[string]bool{}
	var ids []string
	for i := range d.Workflows {
		id := string(d.Workflows[i].Parsed.ID)
		known[id], ids = true, append(ids, id)
	}
	for i := range d.Workflows {
		for _, of := range d.Workflows[i].Parsed.Invokes {
			if known[of.Name] {
				continue
			}
			warnings = append(warnings, document.Fault{
				File: d.Workflows[i].File, Line: of.Line, Reason: fmt.Sprintf("no file defines workflow %s", data.Quote(of.Name)),
				Suggestion: cmp.Or(document.DidYouMean(of.Name, ids), "publish it individually"),
			})
		}
	}
	return warnings
}

// unknownPeople warns of mails that reach nobody, and of schedules whose user creates nothing. Neither is a fault:
// people come and go.
func (d *Definitions) unknownPeople(directory *identity.Directory) (warnings document.Faults) {
	var logins []string
	for _, u := range directory.Users() {
		logins = append(logins, string(u.ID))
	}
	for i := range d.Workflows {
		warn := func(line int, suggestion, reason string) {
			warnings = append(warnings, document.Fault{File: d.Workflows[i].File, Line: line, Reason: reason, Suggestion: suggestion})
		}
		unknown := func(login string, line int, then string) bool {
			if slices.Contains(logins, login) {
				return false
			}
			warn(line, document.DidYouMean(login, logins), fmt.Sprintf("there is no user %s: %s", data.Quote(login), then))
			return true
		}
		for _, to := range d.Workflows[i].Parsed.Addressees {
			login, isUser := strings.CutPrefix(to.Name, "user:")
			if isUser && unknown(login, to.Line, "what is mailed there becomes a dead letter") {
				continue
			}
			if len(directory.Addresses(to.Name)) == 0 {
				warn(to.Line, "", fmt.Sprintf("nobody of %s has an email in %s: what is mailed there becomes a dead letter", to.Name, IdentityFile))
			}
		}
		for _, s := range d.Workflows[i].Parsed.Schedules {
			if s.As != "" && !unknown(s.As, s.AsLine, "the schedule "+s.Name+" creates nothing") && directory.Principal(identity.UserID(s.As)) == nil {
				warn(s.AsLine, "", fmt.Sprintf("the user %s is disabled: the schedule %s creates nothing", s.As, s.Name))
			}
		}
	}
	return warnings
}

// mayName says which roles and privileges definitions may name. directory has the roles; nil: all are taken.
func mayName(directory *identity.Directory) statemachine.ParserOptions {
	options := statemachine.ParserOptions{HasPrivilege: isPrivilege, Privileges: privileges(), HasZone: isZone}
	if directory != nil {
		options.HasRole = func(name string) bool { return directory.HasRole(identity.RoleID(name)) }
		for _, id := range directory.RoleIDs() {
			options.Roles = append(options.Roles, string(id))
		}
	}
	return options
}

// rolesIn returns the roles of an identity.yaml that may have faults. known is false when some role cannot be told.
func rolesIn(text []byte) (ids []string, known bool) {
	root, err := document.Parse(IdentityFile, text)
	if err != nil || root.Kind != document.Mapping {
		return nil, false
	}
	roles := root.Field("roles")
	if roles == nil || roles.Kind != document.Sequence {
		return nil, false
	}
	for _, role := range roles.Items {
		id := role.Field("id")
		if id == nil || id.Kind != document.String {
			return nil, false
		}
		ids = append(ids, id.Text)
	}
	return ids, true
}

// isZone reports whether there is a time zone of the name. The machine's own is none: it is another one elsewhere.
func isZone(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != "" && name != "Local"
}

// ParseDefinition reads and checks one definition that is in no home, as LoadDefinitions does those that are. file is
// the name that faults show, and its extension says YAML or JSON. The error is document.Faults.
func ParseDefinition(file string, text []byte, parser *statemachine.Parser, directory *identity.Directory) (s catalog.Source, warnings document.Faults, err error) {
	parsed, err := parser.With(mayName(directory)).Parse(statemachine.Source{File: file, Text: text, Read: func(string) ([]byte, error) {
		return nil, errors.New("a definition that is published individually cannot refer to files")
	}})
	if err != nil {
		return s, nil, err
	}
	return catalog.Source{File: file, Text: text, Parsed: parsed.Definition}, parsed.Warnings, nil
}

func (d *Definitions) digest() (sum Digest) {
	h := sha256.New()
	for _, w := range d.Workflows {
		addFile(h, w.File, w.Text, w.Refs)
	}
	for _, t := range d.Templates {
		addFile(h, t.File, t.Text, t.Refs)
		_, _ = h.Write(binary.AppendVarint(nil, t.Parsed.Modified.UnixMilli()))
	}
	h.Sum(sum[:0])
	return sum
}

// A nil directory has faults of its own: then loadRights finds those of the file, and returns no rights.
func loadRights(files fs.FS, directory *identity.Directory) (rights *repository.Rights, text []byte, err error) {
	text, _, err = readFile(files, RightsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, document.Faults{{File: RightsFile, Reason: err.Error()}}
	}
	rights, err = repository.ParseRights(RightsFile, text, directory)
	if directory == nil {
		return nil, text, err
	}
	return rights, text, err
}

// loadDefinitions reads the definitions into the set. unread are the ids of those with faults, an empty one when some
// cannot be told.
func loadDefinitions(set *Definitions, files fs.FS, parser *statemachine.Parser) (faults document.Faults, unread []string, err error) {
	wrong := 0
	err = eachSource(files, WorkflowsFolder, &faults, func(f *sourceFile) error {
		parsed, err := parser.Parse(statemachine.Source{File: f.shown, Text: f.text, Read: f.ref})
		if err == nil {
			set.Workflows = append(set.Workflows, catalog.Source{File: f.shown, Text: f.text, Refs: f.refs, Parsed: parsed.Definition})
			set.Warnings = append(set.Warnings, parsed.Warnings...)
		} else if of := document.Faults(nil); errors.As(err, &of) {
			wrong, unread = wrong+len(of), append(unread, idIn(f))
		}
		return err
	})
	if len(faults) > wrong { // a file, or the folder, cannot be read
		unread = append(unread, "")
	}
	return append(faults, twins(set.Workflows)...), unread, err
}

func idIn(f *sourceFile) string {
	root, err := document.Parse(f.shown, f.text)
	if id := root.Field("id"); err == nil && id != nil && id.Kind == document.String {
		return id.Text
	}
	return ""
}

// twins finds files with the same workflow and version as one before.
func twins(sources []catalog.Source) document.Faults {
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
				Reason: fmt.Sprintf("workflow %s version %d is also in %s", v.id, v.number, other),
			})
			continue
		}
		first[v] = s.File
	}
	return faults
}

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

type sourceFile struct {
	files    fs.FS  // the home
	shown    string // its path there
	text     []byte
	modified time.Time
	refs     map[string][]byte // the files that ref has read
}

// ref reads a file that the definition or template refers to. The parser makes sure that it is below the folder.
func (f *sourceFile) ref(name string) ([]byte, error) {
	text, _, err := readFile(f.files, path.Join(path.Dir(f.shown), name))
	if err == nil {
		f.refs[name] = text
	}
	return text, err
}

// eachSource calls load with each file of a folder that is a definition or template, in order, and collects the faults.
func eachSource(files fs.FS, folder string, faults *document.Faults, load func(f *sourceFile) error) error {
	entries, err := fs.ReadDir(files, folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		*faults = append(*faults, document.Fault{File: folder, Reason: fmt.Sprintf("the folder cannot be read: %v", err)})
	}
	for _, e := range entries {
		if e.IsDir() || !isSource(e.Name()) {
			continue
		}
		f := &sourceFile{files: files, shown: folder + "/" + e.Name(), refs: map[string][]byte{}}
		f.text, f.modified, err = readFile(files, f.shown)
		if err != nil {
			*faults = append(*faults, document.Fault{File: f.shown, Line: 1, Reason: err.Error()})
			continue
		}
		if err := collect(faults, load(f)); err != nil {
			return err
		}
	}
	return nil
}

func readFile(files fs.FS, name string) (text []byte, modified time.Time, err error) {
	st, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case !st.Mode().IsRegular():
		return nil, time.Time{}, fmt.Errorf("%s is not a regular file", path.Base(name))
	case st.Size() > MaxFileBytes:
		return nil, time.Time{}, fmt.Errorf("%s is larger than %d bytes", path.Base(name), MaxFileBytes)
	}
	// NB: when the file changes in between, the time is older than the text; then the watcher has everything read
	// again.
	text, err = fs.ReadFile(files, name)
	return text, st.ModTime(), err
}
