package document

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a file. Whoever wrote the file has to correct it; the text is made for them.
type Fault struct {
	// File is the name as it was given to Parse.
	File string
	// Line and Column count from 1, in characters. Column 0: the whole line; Line 0: the whole file.
	Line, Column int
	// Reason says what is wrong.
	Reason string
	// Suggestion says what to do, and may be empty.
	Suggestion string
}

// Error returns "file:line:column: reason (suggestion)", without what is not known.
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Line > 0 && f.Column > 0 {
		fmt.Fprintf(&b, ":%d", f.Column)
	}
	b.WriteString(": " + f.Reason)
	if f.Suggestion != "" {
		b.WriteString(" (" + f.Suggestion + ")")
	}
	return b.String()
}

// Faults is the error of Parse and of Collector.Err: all that is wrong, in
// order of file, line and column. It is never empty when returned as an error.
type Faults []Fault

// Error returns the faults, one a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Take moves the faults in err here; what is no fault is returned.
func (f *Faults) Take(err error) error {
	var faults Faults
	if errors.As(err, &faults) {
		*f = append(*f, faults...)
		return nil
	}
	return err
}

// Sort puts the faults, for example of several files, in their order. Faults at the same place keep theirs.
func (f Faults) Sort() {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
