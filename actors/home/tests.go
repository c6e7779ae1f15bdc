package home

import (
	"io/fs"

	"troupe/actors/simulation/script"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// Known is the set as tests see it. It must have no faults.
func (s *Set) Known() *script.Known {
	definitions := make([]*statemachine.Definition, len(s.Workflows))
	for i := range s.Workflows {
		definitions[i] = s.Workflows[i].Parsed
	}
	return script.NewKnown(s.Directory, definitions)
}

// LoadTests reads and checks the files of tests, in the order of their names. set has what they may name, so it must have no faults.
// The error is document.Faults when the files can be read and are wrong; what is right is returned even then.
func LoadTests(files fs.FS, set *Set) (tests []*script.File, err error) {
	known := set.Known()
	var faults document.Faults
	err = eachSource(files, TestsFolder, &faults, func(f *sourceFile) error {
		parsed, err := script.Parse(f.shown, f.text, known)
		if err == nil {
			tests = append(tests, parsed)
		}
		return err
	})
	if err == nil && len(faults) > 0 {
		err = faults
	}
	return tests, err
}
