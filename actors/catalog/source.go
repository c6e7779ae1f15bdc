package catalog

import (
	"maps"

	"troupe/actors/identity"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// Source is one definition file as it was read and checked.
type Source struct {
	File   string
	Text   []byte
	Refs   map[string][]byte // the files beside it that it refers to, by name
	Parsed *statemachine.Definition
}

type stored struct {
	File string            `json:"file"`
	Text string            `json:"text"`
	Refs map[string]string `json:"refs,omitempty"`
	// By is the user who published the version through the interface; "" when it came from a home, or when that is not
	// known.
	By string `json:"by,omitempty"`
}

// hasContentOf reports whether two mean the same: where they come from does not count.
func (s stored) hasContentOf(other stored) bool {
	return s.Text == other.Text && maps.Equal(s.Refs, other.Refs)
}

func (s *Source) stored(by identity.UserID) stored {
	kept := stored{File: s.File, Text: string(s.Text), By: string(by)}
	for name, ref := range s.Refs {
		if kept.Refs == nil {
			kept.Refs = map[string]string{}
		}
		kept.Refs[name] = string(ref)
	}
	return kept
}

// Line returns where the first of the keys stands at the top of the file; 1 when none does.
func (s *Source) Line(keys ...string) int {
	root, err := document.Parse(s.File, s.Text)
	if err != nil {
		return 1
	}
	for _, key := range keys {
		for _, f := range root.Fields {
			if f.Key.Text == key {
				return f.Key.Line
			}
		}
	}
	return 1
}

func (s *Source) key() versionKey { return versionKey{string(s.Parsed.ID), s.Parsed.Version} }
