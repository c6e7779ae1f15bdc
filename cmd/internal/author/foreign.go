package author

import (
	"path/filepath"
	"slices"
	"strings"

	"troupe/cmd/internal/cli"
	"troupe/statemachine"
	"troupe/statemachine/document"
	"troupe/statemachine/scxml"
	"troupe/statemachine/xstate"
)

type foreign struct {
	name       string   // for --to
	extensions []string // of the files that are imported
	about      string
	// imports makes definitions of a file; read returns another one beside it. The error is document.Faults where the
	// file has some.
	imports func(name string, text []byte, read func(name string) ([]byte, error)) ([]importedFile, error)
	// exports writes a definition. The notes name what the other tool does not see.
	exports func(statemachine.Source) (out []byte, notes document.Faults, err error)
}

type importedFile struct {
	id    string
	text  []byte
	notes document.Faults
}

// Another one is another row.
var foreigns = []foreign{
	{
		name: "scxml", extensions: []string{".scxml"}, about: "W3C SCXML",
		imports: func(name string, text []byte, read func(string) ([]byte, error)) (out []importedFile, err error) {
			files, err := scxml.Import(name, text, read)
			for _, f := range files {
				out = append(out, importedFile{f.ID, f.Text, f.Notes})
			}
			return out, err
		},
		exports: func(s statemachine.Source) ([]byte, document.Faults, error) {
			x, err := scxml.Export(s.File, s.Text)
			return x.Text, x.Notes, err
		},
	},
	{
		name: "xstate", extensions: []string{".json"}, about: "the JSON of XState v5",
		imports: func(name string, text []byte, _ func(string) ([]byte, error)) (out []importedFile, err error) {
			files, err := xstate.Import(name, text)
			for _, f := range files {
				out = append(out, importedFile{f.ID, f.Text, f.Warnings})
			}
			return out, err
		},
		exports: xstate.Export,
	},
}

func foreignOf(file string) (*foreign, error) {
	extension := strings.ToLower(filepath.Ext(file))
	var known []string
	for i := range foreigns {
		if slices.Contains(foreigns[i].extensions, extension) {
			return &foreigns[i], nil
		}
		known = append(known, foreigns[i].extensions...)
	}
	return nil, cli.Usagef("%s: the extension of the file says what it is: %s", file, strings.Join(known, ", "))
}

func foreignNamed(name string) (*foreign, error) {
	var known []string
	for i := range foreigns {
		if foreigns[i].name == name {
			return &foreigns[i], nil
		}
		known = append(known, foreigns[i].name)
	}
	return nil, cli.Usagef("--to %q: it is %s", name, strings.Join(known, " or "))
}

func foreignNames() string {
	names := make([]string, len(foreigns))
	for i, f := range foreigns {
		names[i] = f.name + " (" + f.about + ")"
	}
	return strings.Join(names, ", ")
}
