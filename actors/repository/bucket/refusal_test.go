package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/logtest"
	"troupe/actors/repository"
	"troupe/actors/repository/bucket/buckettest"
	"troupe/persistence/clocktest"
)

func put(t testing.TB, b *buckettest.Bucket, files ...string) {
	t.Helper()
	for _, file := range files {
		require.NoError(t, b.Put(file, "text of "+file), "put %s", file)
	}
}

func read(b *Bucket, file string) (string, error) {
	f, err := b.Open(context.Background(), file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	return string(text), err
}

func TestOptionsWithFaults(t *testing.T) {
	good := Options{Endpoint: "https://s3.example.com", Bucket: "files"}
	for _, c := range []struct {
		fault  string
		change func(*Options)
	}{
		{"endpoint", func(o *Options) { o.Endpoint = "" }},
		{"endpoint", func(o *Options) { o.Endpoint = "s3.example.com" }},
		{"endpoint", func(o *Options) { o.Endpoint = "ftp://s3.example.com" }},
		{"endpoint", func(o *Options) { o.Endpoint = "https://s3.example.com/files" }},
		{"endpoint", func(o *Options) { o.Endpoint = "https://key:secret@s3.example.com" }},
		{"endpoint", func(o *Options) { o.Endpoint = "https://s3.example.com?x=y" }},
		{"endpoint", func(o *Options) { o.Endpoint = "https://s3\x7f" }},
		{"Bucket name", func(o *Options) { o.Bucket = "" }},
		{"Bucket name", func(o *Options) { o.Bucket = "a/b" }},
		{"prefix", func(o *Options) { o.Prefix = "/templates" }},
		{"come together", func(o *Options) { o.AccessKey = "key" }},
		{"come together", func(o *Options) { o.SecretKey = "secret" }},
		{"must go", func(o *Options) { o.AccessKey, o.SecretKey, o.MachineRole = "key", "secret", true }},
	} {
		o := good
		c.change(&o)
		_, err := Open(o)
		assert.True(t, err != nil && strings.Contains(err.Error(), c.fault) && !strings.Contains(err.Error(), "secret@"), "%+v: got %v, want %q", o, err, c.fault)
	}
	b, err := Open(good)
	assert.True(t, err == nil && b.Close() == nil, "got %v for good options", err)
}

// TestAStoreThatCannotBeReadIsUnavailable and never an empty repository, nor a
// missing file.
func TestAStoreThatCannotBeReadIsUnavailable(t *testing.T) {
	server := buckettest.Start(t)
	edit := server.Bucket(nameOf(t))
	put(t, edit, "/d/a.rml")
	good := optionsFor(server, edit)
	for name, change := range map[string]func(*Options){
		"no such bucket":   func(o *Options) { o.Bucket = "another-bucket" },
		"a wrong secret":   func(o *Options) { o.SecretKey = "wrong-secret" },
		"an unknown key":   func(o *Options) { o.AccessKey = "unknown-key" },
		"nobody listens":   func(o *Options) { o.Endpoint = "http://127.0.0.1:1" },
		"no such host":     func(o *Options) { o.Endpoint = "http://store.invalid" },
		"the wrong scheme": func(o *Options) { o.Endpoint = strings.Replace(o.Endpoint, "http:", "https:", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			change(&o)
			b := newBucket(t, o)
			for _, folder := range []string{"/", "/d", "/none"} {
				l, err := b.List(t.Context(), folder)
				assert.True(t, errors.Is(err, failure.ErrUnavailable) && !errors.Is(err, fs.ErrNotExist), "list %s: got %v, %v", folder, l, err)
			}
			for _, file := range []string{"/d/a.rml", "/none"} {
				text, err := read(b, file)
				assert.True(t, errors.Is(err, failure.ErrUnavailable) && !errors.Is(err, fs.ErrNotExist), "open %s: got %q, %v", file, text, err)
			}
		})
	}
}

// TestRightsInTheStore: without keys only what is open to everybody is read, and
// what is not is fs.ErrPermission.
func TestRightsInTheStore(t *testing.T) {
	server := buckettest.Start(t)
	edit := server.Bucket(nameOf(t))
	put(t, edit, "/open/a.rml", "/closed/b.rml")
	require.NoError(t, edit.Open("/open"))
	o := optionsFor(server, edit)
	o.AccessKey, o.SecretKey, o.Region = "", "", "us-east-1"
	b := newBucket(t, o)
	if text, err := read(b, "/open/a.rml"); text != "text of /open/a.rml" || err != nil {
		t.Errorf("an open file: got %q, %v", text, err)
	}
	if text, err := read(b, "/closed/b.rml"); !errors.Is(err, fs.ErrPermission) || errors.Is(err, failure.ErrUnavailable) {
		t.Errorf("a closed file: got %q, %v", text, err)
	}
	l, err := b.List(t.Context(), "/")
	assert.True(t, err == nil && slices.Equal(l.Folders, []string{"closed", "open"}), "list: got %+v, %v", l, err)
}

// TestMachineRole signs with the keys that the machine is given, here as AWS gives
// them to containers.
func TestMachineRole(t *testing.T) {
	server := buckettest.Start(t)
	edit := server.Bucket(nameOf(t))
	put(t, edit, "/a.rml")
	given := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{
			"AccessKeyId": buckettest.AccessKey, "SecretAccessKey": buckettest.SecretKey, "Token": "",
			"Expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		})
	}))
	defer given.Close()
	for _, sooner := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"} {
		t.Setenv(sooner, "") // where the tests run on a machine that has a role
	}
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", given.URL)
	o := optionsFor(server, edit)
	o.AccessKey, o.SecretKey, o.MachineRole = "", "", true
	text, err := read(newBucket(t, o), "/a.rml")
	assert.True(t, text == "text of /a.rml" && err == nil, "got %q, %v", text, err)
}

// TestKeysThatAreNoPaths are left out, and counted.
func TestKeysThatAreNoPaths(t *testing.T) {
	store := newFakeStore(t, "files", "a.rml", "a.rml/b.rml", "bell\x07.rml", "d/", "d//e.rml", "d/./f.rml", "d/../g.rml", "/h.rml", "empty/", "empty/line\n/i.rml", " ", "\u3000")
	b := newBucket(t, store.options())
	for _, c := range []struct {
		folder, files, folders string
		left                   int
	}{
		{"/", "a.rml", "a.rml d empty", 4}, // "/h.rml", the bell, and two blanks
		{"/a.rml", "b.rml", "", 0},
		{"/d", "", "", 3},
		{"/empty", "", "", 1},
	} {
		l, err := b.List(t.Context(), c.folder)
		if !assert.NoError(t, err, c.folder) {
			continue
		}
		slices.Sort(l.Folders)
		files, folders := strings.Join(l.Files, " "), strings.Join(l.Folders, " ")
		assert.True(t, files == c.files && folders == c.folders && l.Left == c.left && !l.Unwatched, "%s: got %+v, want %+v", c.folder, l, c)
	}
	// Watch sees the same folders as List: nothing has changed.
	assert.NoError(t, b.look(t.Context(), func(c repository.Change) { t.Errorf("told %+v", c) }))
}

// TestALookTellsEachFolderThatChanged, until it is listed again.
func TestALookTellsEachFolderThatChanged(t *testing.T) {
	store := newFakeStore(t, "files", "a.rml", "d-e/b.rml", "d/b.rml", "d/e/c.rml", "d/e/f/g.rml", "x/y.rml")
	b := newBucket(t, store.options())
	listed := []string{"/", "/d", "/d/e", "/d/e/f", "/d-e", "/x"}
	list := func() {
		for _, folder := range listed {
			_, _ = b.List(t.Context(), folder) // some go
		}
	}
	told := func() string {
		var folders []string
		assert.NoError(t, b.look(t.Context(), func(c repository.Change) { folders = append(folders, c.Folder+c.Name) }))
		slices.Sort(folders)
		return strings.Join(folders, " ")
	}
	assert.Empty(t, told(), "told")
	list()
	for _, c := range []struct {
		what      string
		add, take string
		want      string
	}{
		{"nothing", "", "", ""},
		{"a file", "d/e/h.rml", "", "/d/e"},
		{"a file less", "", "d/e/h.rml", "/d/e"},
		{"a file for another", "d/e/i.rml", "d/e/c.rml", "/d/e"},
		{"a folder", "d/n/j.rml", "", "/d"},
		{"a folder less, and those below", "", "d/e/", "/d"},
		{"all of a folder at the top", "", "x/", "/"},
		{"a folder for a file", "a.rml/k.rml", "a.rml", "/"},
		{"a file of the same name", "a.rml", "", "/"},
		{"everything", "", "", "/"},
	} {
		store.change(c.add, c.take)
		if c.what == "everything" {
			store.change("", "*")
		}
		for range 2 {
			assert.Equal(t, c.want, told(), "%s: told", c.what)
		}
		list()
		assert.Empty(t, told(), "%s: told", c.what)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Len(t, b.mu.folders, 1, "folders are remembered of an empty bucket")
}

// TestLargeFilesAndKeys holds the limits of both, and keys that no store has.
func TestLargeFilesAndKeys(t *testing.T) {
	server := buckettest.Start(t)
	edit := server.Bucket(nameOf(t))
	require.NoError(t, errors.Join(edit.Put("/at.rml", strings.Repeat("x", 1000)), edit.Put("/above.rml", strings.Repeat("x", 1001))))
	o := optionsFor(server, edit)
	o.FileBytesMax = 1000
	b := newBucket(t, o)
	text, err := read(b, "/at.rml")
	assert.True(t, len(text) == 1000 && err == nil, "at the limit: got %d bytes, %v", len(text), err)
	_, err = read(b, "/above.rml")
	assert.ErrorIs(t, err, failure.ErrTooLarge, "above the limit")
	for _, file := range []string{"/", "/" + strings.Repeat("x", 1024), "/" + strings.Repeat("x", 1025), "/ ", "/\u00a0", "/\u3000\u3000"} {
		_, err := read(b, file)
		assert.True(t, errors.Is(err, fs.ErrNotExist) && !errors.Is(err, failure.ErrUnavailable), "%.20q: got %v, want fs.ErrNotExist", file, err)
	}
}

// TestAnAnswerThatBreaksOff is no shorter file.
func TestAnAnswerThatBreaksOff(t *testing.T) {
	store := newFakeStore(t, "files", "a.rml", "slow.rml")
	o := store.options()
	o.OpenMax = 200 * time.Millisecond
	b := newBucket(t, o)
	store.breakOff("a.rml", 3)
	store.hang("slow.rml", 3)
	for _, file := range []string{"/a.rml", "/slow.rml"} {
		text, err := read(b, file)
		assert.True(t, errors.Is(err, failure.ErrUnavailable) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF), "%s: got %q, %v", file, text, err)
	}
}

// TestAClosedFile is not read any more, and who closes without reading gives the
// connection back. NB: net/http waits for 50 ms to hear that a request was written, or it
// gives up the connection; on the virtual clock they do not pass.
func TestAClosedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipes := clocktest.NewPipes()
		store := newFakeStoreOn(t, pipes, "files", "a.rml")
		b := newBucket(t, store.options())
		b.transport.DialContext = pipes.Dial
		for range 20 {
			f, err := b.Open(t.Context(), "/a.rml")
			require.NoError(t, err)
			assert.NoError(t, f.Close())
			n, err := f.ReadAt(make([]byte, 1), 0)
			assert.True(t, n == 0 && errors.Is(err, fs.ErrClosed), "got %d, %v", n, err)
			synctest.Wait() // until the connection is idle
		}
		assert.Equal(t, 1, store.connections(), "20 files took")
	})
}

// TestAStoreThatComesBack is looked at again, and the log says so once each way.
func TestAStoreThatComesBack(t *testing.T) {
	store := newFakeStore(t, "files", "d/a.rml")
	log := &logtest.Log{}
	o := store.options()
	o.Log, o.Poll = zerolog.New(log), time.Millisecond
	b := newBucket(t, o)
	for _, folder := range []string{"/", "/d"} {
		_, err := b.List(t.Context(), folder)
		require.NoError(t, err)
	}
	store.fail(http.StatusForbidden)
	told := make(chan repository.Change, 100)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		_ = b.Watch(ctx, func(c repository.Change) {
			select {
			case told <- c:
			default:
			}
		})
	})
	defer watching.Wait()
	defer cancel()
	logged := func(text string) {
		t.Helper()
		again := time.NewTicker(time.Millisecond)
		defer again.Stop()
		for log.Count(text) == 0 {
			<-again.C
		}
	}
	logged("cannot be looked at")
	store.change("d/b.rml", "")
	store.fail(0)
	c := <-told
	assert.Equal(t, "/d", c.Folder, "told")
	logged("is looked at again")
	assert.Equal(t, 1, log.Count("cannot be looked at"), "the log")
}

// TestOneSlowLookIsNoReasonToWait: looks that all take long have pauses that do.
func TestOneSlowLookIsNoReasonToWait(t *testing.T) {
	for _, c := range []struct{ took, before, want time.Duration }{
		{time.Millisecond, time.Millisecond, time.Second},
		{11 * time.Second, time.Millisecond, time.Second},
		{time.Millisecond, 11 * time.Second, time.Second},
		{10 * time.Second, 11 * time.Second, 200 * time.Second},
	} {
		assert.Equal(t, c.want, pauseAfter(time.Second, c.took, c.before), "%s behind %s", c.took, c.before)
	}
}
