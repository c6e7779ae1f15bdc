package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"troupe/gateway/client"
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

// Table lays rows out in columns.
func (o *Output) Table(rows [][]string) error { return Table(o.To, rows) }

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

// YAML is written from the tokens of JSON, so that members keep their order and numbers their spelling. It is YAML 1.2.
// A string that a reader of 1.1 could take for something else is quoted.

// AppendYAML appends the YAML of one JSON value, with a line end.
func AppendYAML(dst, text []byte) ([]byte, error) {
	if !json.Valid(text) {
		return nil, errors.New("write YAML: the text is not JSON")
	}
	w := &yamlWriter{in: json.NewDecoder(bytes.NewReader(text)), out: dst}
	w.in.UseNumber()
	if err := w.value(0, atTop); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return w.out, nil
}

type yamlWriter struct {
	in  *json.Decoder
	out []byte
}

type place uint8

const (
	atTop      place = iota // nothing
	behindKey               // "key:"
	behindDash              // "-"
)

func (w *yamlWriter) value(indent int, at place) error {
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	scalar := "null"
	switch t := token.(type) {
	case json.Delim:
		if w.in.More() {
			return w.collection(t == '{', indent, at)
		}
		_, err = w.in.Token() // the closing bracket
		scalar = map[json.Delim]string{'{': "{}", '[': "[]"}[t]
	case string:
		scalar = yamlString(t)
	case json.Number:
		scalar = t.String()
	case bool:
		scalar = strconv.FormatBool(t)
	}
	if at != atTop {
		w.out = append(w.out, ' ')
	}
	w.out = append(append(w.out, scalar...), '\n')
	return err
}

// collection writes the members of an object, or the elements of an array, that has some.
func (w *yamlWriter) collection(isMapping bool, indent int, at place) error {
	if at == behindKey {
		w.out = append(w.out, '\n')
		if !isMapping {
			indent -= 2
		}
	}
	for first := true; w.in.More(); first = false {
		if first && at == behindDash {
			w.out = append(w.out, ' ')
		} else {
			w.indent(indent)
		}
		next := behindDash
		if isMapping {
			next = behindKey
			if err := w.key(indent); err != nil {
				return err
			}
		} else {
			w.out = append(w.out, '-')
		}
		if err := w.value(indent+2, next); err != nil {
			return err
		}
	}
	_, err := w.in.Token() // the closing bracket
	return err
}

// yamlKeyCharsMax is less than what YAML allows a key on one line to have without a "?" before it.
const yamlKeyCharsMax = 1000

func (w *yamlWriter) key(indent int) error {
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	name, _ := token.(string) // the keys of JSON are strings
	key := yamlString(name)
	if len(key) > yamlKeyCharsMax {
		w.out = append(append(append(w.out, "? "...), key...), '\n')
		w.indent(indent)
		key = ""
	}
	w.out = append(append(w.out, key...), ':')
	return nil
}

func (w *yamlWriter) indent(n int) { w.out = append(w.out, strings.Repeat(" ", n)...) }

// yamlPlain is what needs no quotes: words that begin with a letter.
var yamlPlain = regexp.MustCompile(`^[A-Za-z_](?:[A-Za-z0-9_./ -]{0,62}[A-Za-z0-9_./-])?$`)

// yamlWords are words that some reader takes for a truth value or null.
var yamlWords = regexp.MustCompile(`(?i)^(?:y|n|yes|no|on|off|true|false|null)$`)

// What does not print is escaped: every escape of Go's is one of YAML's with the same meaning.
func yamlString(s string) string {
	if yamlPlain.MatchString(s) && !yamlWords.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
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
