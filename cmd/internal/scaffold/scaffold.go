// Package scaffold writes what authors begin with: a small home, and a workflow that runs as it is. Nothing that is
// there already is changed.
package scaffold

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"troupe/actors/home"
	"troupe/statemachine"
)

//go:embed home/identity.yaml
var identity []byte

//go:embed workflow.yaml
var workflow string

const first = "request"

// Home makes a home in a folder that is missing or empty, and returns the files that are for the author.
func Home(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() != ".git" && e.Name() != "lost+found" {
			return nil, fmt.Errorf("%s is not empty: it has %s", dir, e.Name())
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, home.WorkflowsFolder), 0o755); err != nil {
		return nil, err
	}
	people := filepath.Join(dir, home.IdentityFile)
	if err := create(people, identity); err != nil {
		return nil, err
	}
	file, err := Workflow(dir, first)
	if err != nil {
		return nil, err
	}
	return []string{people, file}, home.WriteSchemas(dir)
}

// Workflow adds a workflow to a home and returns its file.
func Workflow(dir, id string) (string, error) {
	if !statemachine.IsIdentifier(id) {
		return "", fmt.Errorf("%q cannot be the id of a workflow: letters, digits and . _ ~ -, at most 128", id)
	}
	file := filepath.Join(dir, home.WorkflowsFolder, id+".yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	text := strings.Replace(workflow, "id: "+first+"\nname: Request\n", "id: "+quoted(id)+"\nname: "+quoted(title(id))+"\n", 1)
	return file, create(file, []byte(text))
}

func quoted(s string) string {
	if r, _ := utf8.DecodeRuneInString(s); unicode.IsLetter(r) && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789- ") == "" {
		switch strings.ToLower(s) {
		case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		default:
			return s
		}
	}
	return "'" + s + "'"
}

// title is an id as people read it: leave-request is Leave request.
func title(id string) string {
	words := strings.NewReplacer("-", " ", "_", " ").Replace(id)
	r, size := utf8.DecodeRuneInString(words)
	return string(unicode.ToUpper(r)) + words[size:]
}

func create(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
