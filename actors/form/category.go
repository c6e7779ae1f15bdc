package form

// Category is one of the three lists that a form can be in, or Every.
type Category uint8

const (
	Current   Category = iota // not submitted yet, or sent back to the start
	Submitted                 // on its way, or completed not long ago
	Archived                  // completed longer ago
	// Every is all of them together. No form has it.
	Every
)

// String returns the word of the interface.
func (c Category) String() string { return [...]string{"current", "submitted", "archived", "every"}[c] }

// CategoryAt decides the category of a form (gateway/INTERFACE.md, "Categories"). archivedBefore is in Unix
// milliseconds: what was completed before it is archived. So a form becomes archived without any write.
func (f *Form) CategoryAt(archivedBefore int64) Category {
	switch {
	case !f.Moved():
		return Current
	case f.DoneAt != 0 && f.DoneAt < archivedBefore:
		return Archived
	}
	return Submitted
}
