package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

var errInputTooLarge = errors.New("is larger than 16 MiB")

const inputBytesMax = 16 << 20

// JsonInput returns the JSON that an argument names: itself, @file, or - for standard input.
func JsonInput(cmd *cobra.Command, flag, value string) (json.RawMessage, error) {
	text, err := []byte(value), error(nil)
	switch name, isFile := strings.CutPrefix(value, "@"); {
	case value == "":
		return nil, nil
	case value == "-":
		text, err = ReadInput(cmd.InOrStdin())
	case isFile:
		text, err = ReadInputFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	text = bytes.TrimSpace(text)
	if !json.Valid(text) {
		return nil, Usagef("--%s: must be JSON, @file or -: %w", flag, jsonFault(text))
	}
	return text, nil
}

// ReadInput reads a stream of at most 16 MiB to its end.
func ReadInput(in io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, inputBytesMax+1))
	if err == nil && len(text) > inputBytesMax {
		err = errInputTooLarge
	}
	return text, err
}

// ReadInputFile is ReadInput of a file.
func ReadInputFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return ReadInput(file)
}

func jsonFault(text []byte) error {
	var v any
	err := json.Unmarshal(text, &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	at := min(max(int(syntax.Offset)-1, 0), len(text)) // NB: the offset is behind what is wrong
	if strings.Contains(syntax.Error(), "unexpected end") {
		at = len(text)
	}
	before := text[:at]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:])))
	return fmt.Errorf("line %d, column %d: %w", line, column, syntax)
}
