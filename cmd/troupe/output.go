package main

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
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"troupe/gateway/client"
)

// The forms of a result.
const (
	formTable = "table"
	formJSON  = "json"
	formJSONL = "jsonl"
	formYAML  = "yaml"
	formLine  = "line"
)

// output writes the result of a command in the form that was asked for.
type output struct {
	form  string
	forms []string
	to    io.Writer
	// terminal says that a person's terminal reads along: what could steer it is
	// escaped in JSON as well.
	terminal bool
}

// addOutput adds the flag -o with the forms that a command has, the default
// first.
func addOutput(cmd *cobra.Command, forms ...string) *output {
	o := &output{forms: forms}
	cmd.Flags().StringVarP(&o.form, "output", "o", forms[0], "form of the result: "+strings.Join(forms, ", "))
	oneOf(cmd, "output", forms...)
	return o
}

// open checks the form and takes the command's standard output.
func (o *output) open(cmd *cobra.Command) error {
	if !slices.Contains(o.forms, o.form) {
		return usageError{fmt.Errorf("--output %q: must be one of %s", o.form, strings.Join(o.forms, ", "))}
	}
	o.to, o.terminal = cmd.OutOrStdout(), isTerminal(cmd.OutOrStdout())
	return nil
}

// isTerminal reports whether a person reads or types a stream.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	st, err := file.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// raw writes JSON as the service sent it. On a terminal what does not print is
// escaped; it means the same.
func (o *output) raw(text []byte) error {
	if o.terminal {
		text = escapeJSON(text)
	}
	_, err := o.to.Write(text)
	return err
}

// line writes JSON on one line.
func (o *output) line(text []byte) error {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return err
	}
	b.WriteByte('\n')
	return o.raw(b.Bytes())
}

// document writes a JSON text as the whole result, in a form that is no table.
func (o *output) document(text []byte) error {
	switch o.form {
	case formYAML:
		return o.yaml(text)
	case formJSONL:
		return o.line(text)
	}
	if err := o.raw(bytes.TrimRight(text, "\n")); err != nil {
		return err
	}
	_, err := io.WriteString(o.to, "\n")
	return err
}

// yaml writes a JSON text as YAML.
func (o *output) yaml(text []byte) error {
	yaml, err := appendYAML(nil, text)
	if err != nil {
		return err
	}
	_, err = o.to.Write(yaml)
	return err
}

// table lays rows out in columns.
func (o *output) table(rows [][]string) error {
	w := tabwriter.NewWriter(o.to, 0, 0, 2, ' ', 0)
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

// escapeJSON writes what does not print as \u…; in valid JSON it can only stand
// in strings, but for white space, which stays.
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

// appendUnicodeEscape appends \u…, two of them beyond the basic plane, as JSON
// has it.
func appendUnicodeEscape(dst []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); r > 0xffff {
		return fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// errInputTooLarge bounds what is read for one argument.
var errInputTooLarge = errors.New("is larger than 16 MiB")

const inputBytesMax = 16 << 20

// jsonInput returns the JSON that an argument names: itself, @file, or - for
// standard input.
func jsonInput(cmd *cobra.Command, flag, value string) (json.RawMessage, error) {
	text, err := []byte(value), error(nil)
	switch name, isFile := strings.CutPrefix(value, "@"); {
	case value == "":
		return nil, nil
	case value == "-":
		text, err = readInput(cmd.InOrStdin())
	case isFile:
		text, err = readInputFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	text = bytes.TrimSpace(text)
	if !json.Valid(text) {
		return nil, usageError{fmt.Errorf("--%s: must be JSON, @file or -: %w", flag, jsonFault(text))}
	}
	return text, nil
}

func readInput(in io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, inputBytesMax+1))
	if err == nil && len(text) > inputBytesMax {
		err = errInputTooLarge
	}
	return text, err
}

func readInputFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return readInput(file)
}
