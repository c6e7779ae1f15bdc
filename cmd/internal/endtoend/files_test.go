package endtoend

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const filePeople = `roles: [{id: clerk}]
users:
  - {id: ann, roles: [clerk]}
  - {id: adm, privileges: [mod-repository-admin]}
`

const filesPath = "/repository/api/v1/list-files"

// says is an answer: the body, or the status and the word of an error.
func says(a answer) string {
	if a.Status == 200 {
		return a.Body
	}
	return fmt.Sprintf("%d %s", a.Status, a.Label())
}

// awaitFiles waits for an answer. Promised are two seconds (gateway/INTERFACE.md, "Paths and
// their order"), which actors/repository holds by its own clock. waitMax is far below the next
// walk of everything, which would find the change anyway.
func awaitFiles(t *testing.T, u user, what, query, want string) {
	t.Helper()
	late := time.Now().Add(waitMax)
	for {
		got := says(u.Get(t, filesPath+query))
		if got == want {
			return
		}
		require.False(t, time.Now().After(late), "%s: got %s, want %s", what, got, want)
		<-time.After(20 * time.Millisecond)
	}
}

// TestFilesChange holds that new files and changed rights count, also after a kill -9.
func TestFilesChange(t *testing.T) {
	h := newHome(t, map[string]string{"identity.yaml": filePeople}) // neither repository/ nor rights.yaml
	p := start(t, h)
	ann := p.as(h.token("ann"))
	awaitFiles(t, ann, "a home without files", "?extension=rml", "[]")
	h.write("rights.yaml", "- {path: /Sales, readers: [role:clerk]}\n")
	h.write("repository/Sales/plan/a.rml", "x")
	awaitFiles(t, ann, "the first file, in new folders, and a new right", "?extension=rml", `["/Sales/plan/a.rml"]`)
	h.write("rights.yaml", "- {path: /Sales, readers: [role:clark]}\n")
	h.remove("repository/Sales/plan/a.rml")
	h.write("repository/Sales/b.rml", "x")
	awaitFiles(t, ann, "a faulty right beside a new file", "?extension=rml", `["/Sales/b.rml"]`)
	h.write("rights.yaml", "- {path: /Sales, readers: []}\n")
	awaitFiles(t, ann, "a right that was taken away", "?extension=rml", `[]`)

	p.kill()
	h.write("repository/Sales/c.rml", "x")
	p = start(t, h)
	assert.Equal(t, `["/Sales/b.rml","/Sales/c.rml"]`, says(p.as(h.token("adm")).Get(t, filesPath+"?extension=rml")))
	ready := p.Send(t, request{Method: "GET", Path: p.Base + "/readyz?verbose"})
	assert.Contains(t, ready.Body, `{"name":"repository","ready":true}`, "/readyz has no repository")
}
