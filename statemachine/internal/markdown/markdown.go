// Package markdown reads the parts of a document that tests hold to the code: its sections, tables and blocks of code.
package markdown

import "strings"

// Section returns the text below the heading of that name, up to the next
// heading of the same level or a higher one; "" when there is none.
func Section(text, heading string) string {
	level := 0
	var inside []string
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if marks, name, ok := strings.Cut(line, " "); ok && !code && marks != "" && strings.Trim(marks, "#") == "" {
			switch {
			case level == 0 && strings.TrimSpace(name) == heading:
				level = len(marks)
				continue
			case level != 0 && len(marks) <= level:
				return strings.Join(inside, "")
			}
		}
		if level != 0 {
			inside = append(inside, line)
		}
	}
	return strings.Join(inside, "")
}

// Table is one table: the cells of its header and of its rows. A cell that is
// wholly `code` is without the backquotes.
type Table struct {
	Header []string
	Rows   [][]string
}

// Tables returns all tables of a text.
func Tables(text string) []Table {
	var all []Table
	inTable, code := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		switch {
		case code || !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.Trim(line, "|-: ") == "": // the line below the header
		case !inTable:
			inTable = true
			all = append(all, Table{Header: cells(line)})
		default:
			last := &all[len(all)-1]
			last.Rows = append(last.Rows, cells(line))
		}
	}
	return all
}

func cells(line string) []string {
	code := false
	line = strings.Map(func(r rune) rune {
		if r == '`' {
			code = !code
		}
		if r == '|' && !code {
			return 0 // no document has it
		}
		return r
	}, line)
	parts := strings.Split(strings.Trim(line, "\x00"), "\x00")
	for i, part := range parts {
		part = strings.TrimSpace(part)
		if inner := strings.TrimSuffix(strings.TrimPrefix(part, "`"), "`"); len(inner) == len(part)-2 && !strings.Contains(inner, "`") {
			part = inner
		}
		parts[i] = part
	}
	return parts
}

// Blocks returns the blocks of code in that language.
func Blocks(text, language string) []string {
	var all []string
	open, wanted := false, false
	for line := range strings.Lines(text) {
		switch {
		case !open && strings.HasPrefix(line, "```"):
			open, wanted = true, strings.TrimSpace(line[3:]) == language
			if wanted {
				all = append(all, "")
			}
		case strings.HasPrefix(line, "```"):
			open = false
		case open && wanted:
			all[len(all)-1] += line
		}
	}
	return all
}
