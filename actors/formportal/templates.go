package formportal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/form"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/schema"
)

// TemplateSource is one template as it was read and checked.
type TemplateSource struct {
	File   string
	Text   []byte
	Refs   map[string][]byte // the files beside it that it refers to, by name
	Parsed *Template
}

// Templates are the accepted templates: those of the newest set of files that was checked and taken.
//
// Readers are lock-free and see one set or the other, never a part of each.
type Templates struct {
	store *persistence.Store
	log   zerolog.Logger

	current atomic.Pointer[templateSet] // replaced when a set is installed, and never changed
}

// Built once, then read only.
type templateSet struct {
	byID  map[templateKey]*Template
	order []*Template // by kind, name and id
}

type templateKey struct {
	kind form.Kind
	id   string
}

func newTemplateSet(templates []*Template) *templateSet {
	s := &templateSet{byID: map[templateKey]*Template{}, order: templates}
	for _, t := range templates {
		s.byID[templateKey{t.Kind, t.ID}] = t
	}
	slices.SortFunc(s.order, func(a, b *Template) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name.For(), b.Name.For()), cmp.Compare(a.ID, b.ID))
	})
	return s
}

const templatesSetting = "form-templates"

// maxTemplatesBytes bounds a set, because it is one row of the store.
const maxTemplatesBytes = 16 << 20

// storedTemplate is the form in which a template is kept: its text, because what is made of it can change.
type storedTemplate struct {
	Kind     string            `json:"kind"`
	File     string            `json:"file"`
	Text     string            `json:"text"`
	Refs     map[string]string `json:"refs,omitempty"`
	Modified int64             `json:"modified"` // Unix milliseconds
}

// OpenTemplates reads the set that was accepted last; without one there are no templates. One that this program cannot
// read any more is left out and logged.
func OpenTemplates(store *persistence.Store, log zerolog.Logger) (*Templates, error) {
	t := &Templates{store: store, log: log}
	return t, t.Reload()
}

// ConcernsTemplates reports whether a row of Meta is the set: when it changes in a cluster, Reload is due.
func ConcernsTemplates(row key.Parts) bool {
	return row.Table == "setting" && row.Name == templatesSetting
}

// Reload makes the set that the store has by now what is offered: in a cluster another node may have published it.
func (t *Templates) Reload() error {
	rows, err := loadTemplates(t.store)
	if err != nil {
		return err
	}
	var templates []*Template
	for _, row := range rows {
		parsed, err := row.parse()
		if err != nil {
			t.log.Error().Err(err).Str("file", row.File).Msg("accepted template cannot be read")
			continue
		}
		templates = append(templates, parsed)
	}
	t.current.Store(newTemplateSet(templates))
	return nil
}

func loadTemplates(s *persistence.Store) (rows []storedTemplate, err error) {
	text, err := s.Load(key.Setting(nil, templatesSetting))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read accepted templates: %w", err)
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("read accepted templates: %w: %w", persistence.ErrCorrupt, err)
	}
	return rows, nil
}

// Files are the files of a store's accepted templates: their texts by their paths in a home.
func Files(s *persistence.Store) (map[string][]byte, error) {
	rows, err := loadTemplates(s)
	files := map[string][]byte{}
	for _, row := range rows {
		files[row.File] = []byte(row.Text)
		for ref, text := range row.Refs {
			files[path.Join(path.Dir(row.File), ref)] = []byte(text)
		}
	}
	return files, err
}

// Roles and workflows that it names may be gone.
func (s *storedTemplate) parse() (*Template, error) {
	src := TemplateText{File: s.File, Text: []byte(s.Text), Modified: time.UnixMilli(s.Modified)}
	switch s.Kind {
	case form.KindForm.String():
		src.Kind = form.KindForm
	case form.KindChecklist.String():
		src.Kind = form.KindChecklist
	default:
		return nil, fmt.Errorf("%w: kind of template %q", persistence.ErrCorrupt, s.Kind)
	}
	src.Read = func(name string) ([]byte, error) {
		ref, ok := s.Refs[name]
		if !ok {
			return nil, fmt.Errorf("file %q was not kept", name)
		}
		return []byte(ref), nil
	}
	return ParseTemplate(src, Known{})
}

// CheckTemplates returns what is wrong with a set that no file has alone: an id that two files of one kind have, and
// too much text.
func CheckTemplates(set []TemplateSource) document.Faults {
	var faults document.Faults
	first := map[templateKey]string{}
	size := 0
	for _, s := range set {
		size += len(s.Text)
		for _, ref := range s.Refs {
			size += len(ref)
		}
		key := templateKey{s.Parsed.Kind, s.Parsed.ID}
		if other, twice := first[key]; twice {
			faults = append(faults, document.Fault{
				File: s.File, Line: 1, Column: 1, Reason: fmt.Sprintf("%s %s is also in %s", key.kind, key.id, other),
			})
			continue
		}
		first[key] = s.File
	}
	if size > maxTemplatesBytes {
		last := set[len(set)-1]
		faults = append(faults, document.Fault{
			File: last.File, Reason: fmt.Sprintf("all templates together have %d bytes, more than %d", size, maxTemplatesBytes),
		})
	}
	return faults
}

// TemplateChange is a checked set on its way to be what is offered.
type TemplateChange struct {
	templates *Templates
	next      *templateSet
	rows      []storedTemplate
}

// Prepare checks a set. The error is document.Faults.
func (t *Templates) Prepare(set []TemplateSource) (*TemplateChange, error) {
	if faults := CheckTemplates(set); len(faults) > 0 {
		return nil, faults
	}
	rows := make([]storedTemplate, 0, len(set))
	templates := make([]*Template, 0, len(set))
	for _, s := range set {
		row := storedTemplate{Kind: s.Parsed.Kind.String(), File: s.File, Text: string(s.Text), Modified: s.Parsed.Modified.UnixMilli()}
		for name, ref := range s.Refs {
			if row.Refs == nil {
				row.Refs = map[string]string{}
			}
			row.Refs[name] = string(ref)
		}
		rows = append(rows, row)
		templates = append(templates, s.Parsed)
	}
	slices.SortFunc(rows, func(a, b storedTemplate) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.File, b.File))
	})
	return &TemplateChange{templates: t, next: newTemplateSet(templates), rows: rows}, nil
}

// Setting implements catalog.Companion.
func (c *TemplateChange) Setting() (name string, value any, empty bool) {
	return templatesSetting, c.rows, len(c.rows) == 0
}

// Install implements catalog.Companion.
func (c *TemplateChange) Install() { c.templates.current.Store(c.next) }

// Len returns how many templates there are, of both kinds.
func (t *Templates) Len() int { return len(t.current.Load().order) }

// Get returns a template whether it is enabled or not; nil when there is none.
func (t *Templates) Get(kind form.Kind, id string) *Template {
	return t.current.Load().byID[templateKey{kind, id}]
}

// TaskForms are the forms, for tasks.
func (t *Templates) TaskForms() *TaskForms {
	f := &TaskForms{Find: func(id string) *Template { return t.Get(form.KindForm, id) }}
	for _, of := range t.current.Load().order {
		if of.Kind == form.KindForm {
			f.IDs = append(f.IDs, of.ID)
		}
	}
	return f
}

// Enabled returns a template that new ones can be made of; nil when there is none or it is switched off.
func (t *Templates) Enabled(kind form.Kind, id string) *Template {
	if found := t.Get(kind, id); found != nil && found.Enabled {
		return found
	}
	return nil
}

// OfRole returns the enabled templates that name the role, in the order of their names and then of their ids.
func (t *Templates) OfRole(kind form.Kind, role string) []*Template {
	var out []*Template
	for _, template := range t.current.Load().order {
		if template.Kind == kind && template.Enabled && slices.Contains(template.Roles, role) {
			out = append(out, template)
		}
	}
	return out
}

func (t *Template) fits(d *statemachine.Definition, event statemachine.EventName) bool {
	return !slices.ContainsFunc(d.Mismatches(event, t.schema), func(m schema.Mismatch) bool { return sayMisfit("", m).isFault })
}

// TaskForms are the templates that tasks may name.
type TaskForms struct {
	Find func(id string) *Template // Find returns the template of a form; nil when there is none
	// IDs are those of all, for suggestions. Part: there may be others, of which nothing is known.
	IDs  []string
	Part bool
}

// Check returns what is wrong with the forms that tasks of a definition have: each exists, and some event of its task takes what it
// sends; where the template names one of these events, that one does. file is the definition's.
func (f *TaskForms) Check(file string, d *statemachine.Definition) (faults, warnings document.Faults) {
	for _, of := range d.TaskForms {
		add := func(to *document.Faults, reason, suggestion string) {
			*to = append(*to, document.Fault{File: file, Line: of.Line, Column: of.Column, Reason: reason, Suggestion: suggestion})
		}
		t, events := f.Find(of.Form), d.TaskSends(of.At)
		switch {
		case t == nil && f.Part:
		case t == nil:
			add(&faults, fmt.Sprintf("no form has the id %s", data.Quote(of.Form)), document.DidYouMean(of.Form, f.IDs))
		case len(events) == 0:
			add(&faults, "the task has a form, and no event of its own to send", "give the node a transition on an event")
		case t.namesAnother(events):
			var names []string
			for _, name := range events {
				names = append(names, string(name))
			}
			add(&faults, fmt.Sprintf("the form %s sends the event %s, which the task does not take", data.Quote(t.ID), data.Quote(t.Submit)), document.DidYouMean(t.Submit, names))
		default:
			for _, said := range t.misfitsOf(d, events) {
				to := &warnings
				if said.isFault {
					to = &faults
				}
				add(to, fmt.Sprintf("form %s: %s", data.Quote(t.ID), said.reason), said.suggestion)
			}
		}
	}
	return faults, warnings
}

// namesAnother reports whether the template says that it sends an event which is none of these.
func (t *Template) namesAnother(events []statemachine.EventName) bool {
	byItself := t.AnyWorkflow && t.Submit == usualSubmit
	return t.Submit != "" && !byItself && !slices.Contains(events, statemachine.EventName(t.Submit))
}

// misfitsOf says where a task's events do not take what the form sends: the one that the template names, or all.
func (t *Template) misfitsOf(d *statemachine.Definition, events []statemachine.EventName) (out []misfit) {
	if slices.Contains(events, statemachine.EventName(t.Submit)) {
		events = []statemachine.EventName{statemachine.EventName(t.Submit)}
	}
	for _, event := range events {
		var of []misfit
		for _, m := range d.Mismatches(event, t.schema) {
			of = append(of, sayMisfit("the event "+data.Quote(string(event)), m))
		}
		if !slices.ContainsFunc(of, func(m misfit) bool { return m.isFault }) {
			return of
		}
		out = append(out, of...)
	}
	return out
}
