package home

import (
	"io/fs"
	"slices"

	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// templatesMayName says what templates may refer to: the roles and the workflows of their own set, each in its highest
// version. unread are the ids of definitions with faults; with an empty one, any other may be among them.
func templatesMayName(set *Definitions, options statemachine.ParserOptions, unread []string) formportal.Known {
	newest := map[string]*statemachine.Definition{}
	known := formportal.Known{HasRole: options.HasRole, Roles: options.Roles}
	for _, w := range set.Workflows {
		id := string(w.Parsed.ID)
		before := newest[id]
		if before == nil {
			known.Workflows = append(known.Workflows, id)
		}
		if before == nil || before.Version < w.Parsed.Version {
			newest[id] = w.Parsed
		}
	}
	known.Workflows = append(known.Workflows, slices.DeleteFunc(slices.Clone(unread), func(id string) bool { return id == "" || newest[id] != nil })...)
	known.Workflow = func(id string) (*statemachine.Definition, bool) {
		d := newest[id]
		return d, d != nil || slices.Contains(unread, id) || slices.Contains(unread, "")
	}
	return known
}

var templateFolders = []struct {
	name string
	kind form.Kind
}{
	{FormsFolder, form.KindForm},
	{ChecklistsFolder, form.KindChecklist},
}

func loadTemplates(set *Definitions, files fs.FS, known formportal.Known) (document.Faults, error) {
	var faults document.Faults
	for _, folder := range templateFolders {
		err := eachSource(files, folder.name, &faults, func(f *sourceFile) error {
			parsed, err := formportal.ParseTemplate(formportal.TemplateText{Kind: folder.kind, File: f.shown, Text: f.text, Modified: f.modified, Read: f.ref}, known)
			if parsed != nil {
				set.Warnings = append(set.Warnings, parsed.Warnings...)
			}
			if err == nil {
				set.Templates = append(set.Templates, formportal.TemplateSource{File: f.shown, Text: f.text, Refs: f.refs, Parsed: parsed})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return append(faults, formportal.CheckTemplates(set.Templates)...), nil
}

// checkTaskForms compares the forms that tasks name with those of the set. whole is false when templates have faults.
func checkTaskForms(set *Definitions, whole bool) (faults document.Faults) {
	forms := map[string]*formportal.Template{}
	of := formportal.TaskForms{Find: func(id string) *formportal.Template { return forms[id] }, Part: !whole}
	for _, t := range set.Templates {
		if t.Parsed.Kind == form.KindForm {
			forms[t.Parsed.ID] = t.Parsed
			of.IDs = append(of.IDs, t.Parsed.ID)
		}
	}
	for _, w := range set.Workflows {
		wrong, warnings := of.Check(w.File, w.Parsed)
		faults = append(faults, wrong...)
		set.Warnings = append(set.Warnings, warnings...)
	}
	return faults
}
