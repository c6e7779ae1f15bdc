package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/identity"
	"troupe/actors/template"
)

// fakeFiles lists what list says, and has templates without parameters. Its zero
// value has nothing.
type fakeFiles struct {
	list func(yield func(string) error) error
	fail error // of Parameters
}

func (f fakeFiles) List(_ context.Context, _ *identity.Principal, _ string, yield func(string) error) error {
	if f.list == nil {
		return nil
	}
	return f.list(yield)
}

func (f fakeFiles) Parameters(context.Context, *identity.Principal, template.Kind, string) ([]template.Param, error) {
	return []template.Param{}, f.fail
}

const filesPath = "/repository/api/v1/list-files?extension=rml"

// TestLongListsOfFiles are streamed.
func TestLongListsOfFiles(t *testing.T) {
	const many = 50_000
	s := startServer(t, Options{}, nil)
	s.Open(Services{Workflows: s.workflows, Credentials: fakeCredentials{}, Repository: fakeFiles{list: func(yield func(string) error) error {
		for i := range many {
			if err := yield(fmt.Sprintf("/folder/%06d.rml", i)); err != nil {
				return err
			}
		}
		return nil
	}}})
	a := s.do(t, get(filesPath))
	var paths []string
	err := json.Unmarshal([]byte(a.Body), &paths)
	assert.True(t, err == nil && len(paths) == many && paths[many-1] == "/folder/049999.rml" && a.Header.Get("Content-Length") == "",
		"got %d paths, %v and Content-Length %q, want %d, streamed", len(paths), err, a.Header.Get("Content-Length"), many)
}
