package home

import (
	"path/filepath"

	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// templatesMayName says what templates may refer to: the roles and the workflows
// of their own set, whose new instances have the highest version. When some
// definitions have faults, an unknown workflow may be one of those, and is none
// of the template's faults.
func templatesMayName(set *Definitions, options statemachine.ParserOptions, whole bool) formportal.Known {
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
	known.Workflow = func(id string) (*statemachine.Definition, bool) {
		d := newest[id]
		return d, d != nil || !whole
	}
	return known
}

// templateFolders are where the templates of each kind are.
var templateFolders = []struct {
	name string
	kind form.Kind
}{
	{FormsFolder, form.Plain},
	{ChecklistsFolder, form.Checklist},
}

// loadTemplates reads the templates of both kinds into the set.
func loadTemplates(set *Definitions, dir string, known formportal.Known) (document.Faults, error) {
	var faults document.Faults
	for _, folder := range templateFolders {
		files, err := namesIn(dir, folder.name)
		if err := collect(&faults, err); err != nil {
			return nil, err
		}
		for _, name := range files {
			source, err := loadTemplate(dir, folder.name, name, folder.kind, known)
			if err := collect(&faults, err); err != nil {
				return nil, err
			}
			if err == nil {
				set.Templates = append(set.Templates, *source)
				set.Warnings = append(set.Warnings, source.Parsed.Warnings...)
			}
		}
	}
	return append(faults, formportal.CheckTemplates(set.Templates)...), nil
}

func loadTemplate(dir, folder, name string, kind form.Kind, known formportal.Known) (*formportal.TemplateSource, error) {
	shown := folder + "/" + name
	text, modified, err := readFile(filepath.Join(dir, folder, name))
	if err != nil {
		return nil, document.Faults{{File: shown, Line: 1, Reason: err.Error()}}
	}
	source := &formportal.TemplateSource{File: shown, Text: text, Refs: map[string][]byte{}}
	source.Parsed, err = formportal.ParseTemplate(formportal.TemplateText{
		Kind: kind, File: shown, Text: text, Modified: modified,
		Read: func(ref string) ([]byte, error) {
			// The parser has made sure that ref stays below the folder.
			b, _, err := readFile(filepath.Join(dir, folder, filepath.FromSlash(ref)))
			if err == nil {
				source.Refs[ref] = b
			}
			return b, err
		},
	}, known)
	if err != nil {
		return nil, err
	}
	return source, nil
}
