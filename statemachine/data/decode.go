package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// DecodeObject reads one JSON object as encoding/json does, and refuses a member that into does not have or that is there twice: of
// those, other readers may take the other one. It does not look into the values of members.
func DecodeObject(text []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(into); errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	} else if err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	in = json.NewDecoder(bytes.NewReader(text))
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return errors.New("it must be a JSON object")
	}
	var names []string
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(name, other) }) { // as encoding/json finds a field
			return fmt.Errorf("the member %s is there twice", Quote(name))
		}
		names = append(names, name)
		var skipped json.RawMessage
		if err := in.Decode(&skipped); err != nil {
			return err
		}
	}
	return nil
}
