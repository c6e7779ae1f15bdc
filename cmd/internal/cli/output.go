package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"troupe/gateway/client"
	"troupe/statemachine/document"
)

const (
	FormTable = "table"
	FormJSON  = "json"
	FormJSONL = "jsonl"
	FormYAML  = "yaml"
	FormLine  = "line"
)

// Output writes the result of a command in the form that was asked for.
type Output struct {
	Form     string
	To       io.Writer
	terminal bool // terminal says that a person's terminal reads along: what could steer it is escaped in JSON as well
}

// AddOutput adds the flag -o with the forms that a command has, the default first.
func AddOutput(cmd *cobra.Command, forms ...string) *Output {
	o := &Output{}
	cmd.Flags().StringVarP(&o.Form, "output", "o", forms[0], "output format: "+strings.Join(forms, ", "))
	OneOf(cmd, "output", forms...)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains(forms, o.Form) {
			return Usagef("--output %q: must be one of %s", o.Form, strings.Join(forms, ", "))
		}
		o.To, o.terminal = cmd.OutOrStdout(), IsTerminal(cmd.OutOrStdout())
		return nil
	}
	return o
}

// IsTerminal reports whether a person reads or types a stream.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	st, err := file.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// Raw writes JSON as the service sent it. On a terminal what does not print is escaped; it means the same.
func (o *Output) Raw(text []byte) error {
	if o.terminal {
		text = escapeJSON(text)
	}
	_, err := o.To.Write(text)
	return err
}

// Line writes JSON on one line.
func (o *Output) Line(text []byte) error {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return err
	}
	b.WriteByte('\n')
	return o.Raw(b.Bytes())
}

// Document writes a JSON text as the whole result, in a form that is not a table.
func (o *Output) Document(text []byte) error {
	switch o.Form {
	case FormYAML:
		return o.YAML(text)
	case FormJSONL:
		return o.Line(text)
	}
	if err := o.Raw(bytes.TrimRight(text, "\n")); err != nil {
		return err
	}
	_, err := io.WriteString(o.To, "\n")
	return err
}

// Marshaled is Document of what one of the functions of package json has returned.
func (o *Output) Marshaled(text []byte, err error) error {
	if err != nil {
		return err
	}
	return o.Document(text)
}

// YAML writes a JSON text as YAML.
func (o *Output) YAML(text []byte) error {
	yaml, err := AppendYAML(nil, text)
	if err != nil {
		return err
	}
	_, err = o.To.Write(yaml)
	return err
}

// Table lays rows out in columns. On a terminal times are relative to now.
func (o *Output) Table(rows [][]string) error {
	if o.terminal {
		relateTimes(rows, time.Now())
	}
	return Table(o.To, rows)
}

// relateTimes replaces the cells that are a time: "2026-12-01T09:30:00Z" becomes "3 minutes ago".
func relateTimes(rows [][]string, now time.Time) {
	for _, row := range rows {
		for i, cell := range row {
			if at, err := time.Parse(time.RFC3339, cell); err == nil {
				row[i] = humanize.RelTime(at, now, "ago", "from now")
			}
		}
	}
}

// Listing lays out a list whose first row is its head. An empty one has no table: a sentence on standard error says so.
func (o *Output) Listing(complaints io.Writer, things string, rows [][]string) error {
	if len(rows) > 1 {
		return o.Table(rows)
	}
	SayNone(complaints, things)
	return nil
}

// WriteList writes a list: a table with its head, a line of JSON for each item, or all of them as the member things.
func WriteList[T any](cmd *cobra.Command, o *Output, things string, head []string, items []T, row func(*T) []string) error {
	rows := [][]string{head}
	for i := range items {
		if o.Form == FormJSONL {
			if err := o.Marshaled(json.Marshal(&items[i])); err != nil {
				return err
			}
		}
		rows = append(rows, row(&items[i]))
	}
	switch o.Form {
	case FormTable:
		return o.Listing(cmd.ErrOrStderr(), things, rows)
	case FormJSONL:
		return nil
	}
	return o.Marshaled(json.Marshal(map[string][]T{things: append([]T{}, items...)}))
}

// SayNone says that a list is empty.
func SayNone(complaints io.Writer, things string) {
	_, _ = fmt.Fprintf(complaints, "No %s found.\n", things)
}

// Table lays rows out in columns.
func Table(to io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = client.Printable(cell)
		}
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

func escapeJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) || strings.ContainsRune(" \t\r\n", r) {
			out = append(out, text[:size]...)
		} else {
			out = appendUnicodeEscape(out, r)
		}
		text = text[size:]
	}
	return out
}

func appendUnicodeEscape(dst []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); r > 0xffff {
		return fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// AnyForm are the forms of most results.
var AnyForm = []string{FormTable, FormJSON, FormJSONL, FormYAML}

// AppendYAML appends the YAML of one JSON value, with a line end. Members keep their order and numbers their spelling.
func AppendYAML(dst, text []byte) ([]byte, error) {
	if !json.Valid(text) {
		return nil, errors.New("write YAML: the text is not JSON")
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	n, err := readNode(in)
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return append(dst, document.Write(n)...), nil
}

func readNode(in *json.Decoder) (*document.Node, error) {
	token, err := in.Token()
	n := &document.Node{}
	switch t := token.(type) {
	case json.Delim:
		n.Kind = document.Sequence
		if t == '{' {
			n.Kind = document.Mapping
		}
		for err == nil && in.More() {
			var key, value *document.Node
			if n.Kind == document.Mapping {
				key, err = readNode(in)
			}
			if err == nil {
				value, err = readNode(in)
			}
			if n.Kind == document.Mapping {
				n.Fields = append(n.Fields, document.Field{Key: key, Value: value})
			} else {
				n.Items = append(n.Items, value)
			}
		}
		if err == nil {
			_, err = in.Token() // the closing bracket
		}
	case string:
		n.Kind, n.Text = document.String, t
	case json.Number:
		n.Kind, n.Text = document.Number, t.String()
	case bool:
		n.Kind, n.Text = document.Bool, strconv.FormatBool(t)
	}
	return n, err
}

// LiveLine is a line on a terminal that is written again and again. On anything else nothing is said.
type LiveLine struct {
	to io.Writer // nil: nothing is said
}

// NewLiveLine makes the line of a stream.
func NewLiveLine(to io.Writer) *LiveLine {
	if !IsTerminal(to) {
		return &LiveLine{}
	}
	return &LiveLine{to}
}

// IsLive reports whether somebody sees it.
func (l *LiveLine) IsLive() bool { return l.to != nil }

// clearLine takes the cursor to the begin of the line and erases it (ECMA-48, EL).
const clearLine = "\r\x1b[K"

// Say writes the line again.
func (l *LiveLine) Say(text string) {
	if l.to != nil {
		_, _ = io.WriteString(l.to, clearLine+text)
	}
}

// Clear erases the line.
func (l *LiveLine) Clear() {
	if l.to != nil {
		_, _ = io.WriteString(l.to, clearLine)
	}
}

// ErrInterrupted is what a command says that a signal has ended.
var ErrInterrupted = errors.New("interrupted")

// SizeText is a number of bytes for people.
func SizeText(bytes int64) string { return humanize.IBytes(uint64(max(bytes, 0))) }
