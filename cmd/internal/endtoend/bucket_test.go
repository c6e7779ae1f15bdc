package endtoend

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/repository/bucket/buckettest"
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

// moveToBucket moves the files of a home to a bucket, beside others that are
// nobody's business, and says so in its settings.
func moveToBucket(t *testing.T, h *home, server *buckettest.Server) *buckettest.Bucket {
	t.Helper()
	edit := server.Bucket("files")
	for _, key := range []string{"other.rml", "templates.rml", "templates/of/beside.rml"} {
		require.NoError(t, edit.PutKey(key, "<r>${private}</r>"))
	}
	edit.Prefix = "templates/of/us/"
	root := filepath.Join(h.dir, "repository")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return edit.Put(strings.TrimPrefix(path, root), string(text))
	})
	if err == nil {
		err = os.RemoveAll(root)
	}
	require.NoError(t, err)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(buckettest.SecretKey+"\n"), 0o600))
	t.Setenv("TROUPE_REPOSITORY_SECRET_KEY_FILE", secret)
	h.write("troupe.yaml", fmt.Sprintf("repository:\n  endpoint: %s\n  bucket: files\n  prefix: templates/of/us\n  accessKey: %s\n  poll: 50ms\n",
		server.Endpoint, buckettest.AccessKey))
	return edit
}

// TestBucketChanges: what changes in a bucket counts after the next look, and a
// store that is away makes no list shorter.
func TestBucketChanges(t *testing.T) {
	server := buckettest.Start(t)
	h := newHome(t, map[string]string{"identity.yaml": filePeople, "repository/a.rml": "<r>${one}</r>"})
	edit := moveToBucket(t, h, server)
	p := start(t, h)
	adm := p.as(h.token("adm"))
	const parameters = "/rml-engine/api/v1/parameters?rml=/a.rml"
	must := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	awaitFiles(t, adm, "the first", "?extension=rml", `["/a.rml"]`)
	must(edit.Put("/Sales/plan/b.rml", "x"))
	awaitFiles(t, adm, "a file in new folders", "?extension=rml", `["/Sales/plan/b.rml","/a.rml"]`)
	must(edit.Rename("/Sales", "/Sold"))
	awaitFiles(t, adm, "a renamed folder", "?extension=rml", `["/Sold/plan/b.rml","/a.rml"]`)
	must(edit.Remove("/Sold"))
	awaitFiles(t, adm, "a removed folder", "?extension=rml", `["/a.rml"]`)
	for _, name := range []string{"one", "two"} {
		must(edit.Put("/a.rml", "<r>${"+name+"}</r>"))
		want := fmt.Sprintf(`[{"name":%q,"type":"","defaultValue":""}]`, name)
		for range 2 { // the second is from memory
			assert.Equal(t, want, says(adm.Get(t, parameters)))
		}
	}

	server.Stop()
	assert.Equal(t, `["/a.rml"]`, says(adm.Get(t, filesPath+"?extension=rml")), "a list without the store")
	got := adm.Get(t, parameters)
	assert.True(t, says(got) == "503 Unavailable" && got.Header.Get("Retry-After") != "", "a file without the store: got %d %s", got.Status, got.Body)
	p.stop()

	p = start(t, h)
	ready := p.Send(t, request{Method: "GET", Path: p.Base + "/readyz?verbose"})
	assert.True(t, ready.Status == 200 && strings.Contains(ready.Body, `"name":"repository","ready":false`), "%v %v", ready.Status, ready.Body)
	p.await("the log to say why", func() bool { return p.log.has("it is tried again") })
	p.stop()
}
