package template_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/repository/disk"
	"troupe/actors/template"
	"troupe/actors/template/templatetest"
)

// documentType is the content type of most documents.
const documentType = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"

const report = `<report title="${title}"><text>${from#date} to ${to#date#2026-12-31}</text></report>`

// service is one over a repository on disk, in which John reads /Open.
type service struct {
	*template.Service
	t   *testing.T
	dir string
}

var (
	reader = &identity.Principal{ID: "john.doe"}
	other  = &identity.Principal{ID: "jane.roe"}
	master = &identity.Principal{ID: "root", Privileges: []string{string(identity.RepositoryAdmin)}}
)

func newService(t *testing.T, o template.Options) *service {
	t.Helper()
	s := &service{t: t, dir: t.TempDir()}
	d, err := identity.ParseDirectory("identity.yaml", []byte("users: [{id: john.doe}, {id: jane.roe}, {id: root, privileges: [mod-repository-admin]}]\n"))
	require.NoError(t, err)
	rights, err := repository.ParseRights("rights.yaml", []byte("- {path: /Open, readers: ['user:john.doe']}\n"), d)
	require.NoError(t, err)
	source, err := disk.Open(disk.Options{Dir: s.dir, Log: zerolog.Nop()})
	require.NoError(t, err)
	s.Service = start(t, o, func(system *actors.System) template.Files {
		files := repository.Start(repository.Options{System: system, Source: source, Rights: rights, Log: zerolog.Nop()})
		t.Cleanup(func() {
			assert.NoError(t, errors.Join(files.Stop(context.Background()), source.Close()))
		})
		return files
	})
	return s
}

func start(t *testing.T, o template.Options, files func(*actors.System) template.Files) *template.Service {
	t.Helper()
	o.System, o.Log = actors.NewSystem(zerolog.Nop()), zerolog.Nop()
	t.Cleanup(func() {
		assert.NoError(t, o.System.Stop(context.Background()))
	})
	o.Files = files(o.System)
	s := template.Start(o)
	t.Cleanup(func() {
		assert.NoError(t, s.Stop(context.Background()))
	})
	return s
}

func (s *service) write(path, text string) {
	s.t.Helper()
	name := filepath.Join(s.dir, filepath.FromSlash(path))
	require.NoError(s.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(s.t, os.WriteFile(name+".new", []byte(text), 0o644))
	require.NoError(s.t, os.Rename(name+".new", name))
}

func (s *service) ask(who *identity.Principal, path string) (string, error) {
	kind, ok := template.KindOf(path)
	if !ok {
		kind = template.Report
	}
	params, err := s.Parameters(s.t.Context(), who, kind, path)
	return strings.Join(templatetest.Short(params), " "), err
}

// document is a small document template with one parameter. Its content type is the one
// that the extension of its file goes with.
func document(contentType string) string {
	entries := templatetest.Package{Main: templatetest.Body("<w:p><w:r><w:t>${na</w:t></w:r><w:r><w:t>me}</w:t></w:r></w:p>")}.Entries()
	entries[0].Content = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/>` +
		`<Override PartName="/word/document.xml" ContentType="` + contentType + `"/></Types>`
	return string(templatetest.Zip(entries...))
}

// TestWhoReadsAndWhatIsThere holds gateway/INTERFACE.md, "The path of a template",
// gateway/INTERFACE.md, "What is not a template", and persistence/PROMISES.md,
// "P19".
func TestWhoReadsAndWhatIsThere(t *testing.T) {
	s := newService(t, template.Options{})
	s.write("/Open/a.rml", report)
	s.write("/Open/b.docx", document(documentType))
	s.write("/Open/none.rml", "<a/>")
	s.write("/Open/broken.rml", "<a>")
	s.write("/Open/c.txt", report)
	s.write("/Open/d.docx", report)
	s.write("/Closed/a.rml", report)
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "Closed/a.rml"), filepath.Join(s.dir, "Open/link.rml")))
	for _, c := range []struct {
		name string
		who  *identity.Principal
		path string
		want string
		err  error
	}{
		{"a report template", reader, "/Open/a.rml", "from#date title to#date#2026-12-31", nil},
		{"a document template", reader, "/Open/b.docx", "name", nil},
		{"no parameters", reader, "/Open/none.rml", "", nil},
		{"the administrator", master, "/Closed/a.rml", "from#date title to#date#2026-12-31", nil},
		{"what the caller does not read", reader, "/Closed/a.rml", "", failure.ErrNotFound},
		{"the same by another", other, "/Open/a.rml", "", failure.ErrNotFound},
		{"what is not there", reader, "/Open/nowhere.rml", "", failure.ErrNotFound},
		{"a folder", reader, "/Open", "", failure.ErrNotFound},
		{"a link", reader, "/Open/link.rml", "", failure.ErrNotFound},
		{"another spelling", reader, "/Open/../Open/a.rml", "", failure.ErrNotFound},
		{"no leading slash", reader, "Open/a.rml", "", failure.ErrNotFound},
		{"NUL", reader, "/Open/a.rml\x00", "", failure.ErrNotFound},
		{"not well-formed", reader, "/Open/broken.rml", "", template.ErrNotTemplate},
		{"another extension", reader, "/Open/c.txt", "", template.ErrNotTemplate},
		{"another extension that the caller does not read", other, "/Open/c.txt", "", failure.ErrNotFound},
		{"a report under the name of a document", reader, "/Open/d.docx", "", template.ErrNotTemplate},
	} {
		got, err := s.ask(c.who, c.path)
		assert.True(t, got == c.want && errors.Is(err, c.err), "%s: got %q, %v, want %q, %v", c.name, got, err, c.want, c.err)
	}
	_, err := s.Parameters(t.Context(), reader, template.Document, "/Open/a.rml")
	assert.ErrorIs(t, err, template.ErrNotTemplate, "a report template asked for as a document")
}

// TestNames: a template is known by its content and by its extension, whose case
// does not count.
func TestNames(t *testing.T) {
	s := newService(t, template.Options{})
	for extension, contentType := range map[string]string{
		"docx": documentType,
		"dotx": "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
		"docm": "application/vnd.ms-word.document.macroEnabled.main+xml",
		"dotm": "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
	} {
		for _, spelling := range []string{extension, strings.ToUpper(extension), strings.ToUpper(extension[:1]) + extension[1:]} {
			s.write("/Open/a."+spelling, document(contentType))
			got, err := s.ask(reader, "/Open/a."+spelling)
			assert.True(t, err == nil && got == "name", "a.%s: got %q, %v, want name", spelling, got, err)
			_, err = s.Parameters(t.Context(), reader, template.Report, "/Open/a."+spelling)
			assert.ErrorIs(t, err, template.ErrNotTemplate, "a.%s as a report", spelling)
		}
	}
	s.write("/Open/A.RML", report)
	got, err := s.ask(reader, "/Open/A.RML")
	assert.True(t, err == nil && strings.HasPrefix(got, "from#date"), "A.RML: got %q, %v", got, err)
	// The name alone makes no template, and neither does the content.
	s.write("/Open/B.DOTX", report)
	s.write("/Open/b.odt", document(documentType))
	for _, path := range []string{"/Open/B.DOTX", "/Open/b.odt"} {
		_, err := s.Parameters(t.Context(), reader, template.Document, path)
		assert.ErrorIs(t, err, template.ErrNotTemplate, path)
	}
}

func TestAnAnswerIsRememberedUntilTheFileChanges(t *testing.T) {
	s := newService(t, template.Options{CachedBytesMax: 2000})
	s.write("/Open/a.rml", report)
	for range 3 {
		got, err := s.ask(reader, "/Open/a.rml")
		require.True(t, err == nil && strings.HasPrefix(got, "from"), "%v %v", got, err)
	}
	m := s.Metrics()
	assert.True(t, m.Parsed == 1 && m.Cached == 2, "got %+v, want one look and two answers from memory", m)
	_, err := s.ask(other, "/Open/a.rml")
	assert.ErrorIs(t, err, failure.ErrNotFound, "somebody who does not read")
	s.write("/Open/a.rml", `<a>${new}</a>`)
	got, err := s.ask(reader, "/Open/a.rml")
	assert.True(t, err == nil && got == "new", "after a change: got %q, %v", got, err)
	for n := range 5 { // more than CachedBytesMax holds
		s.write(fmt.Sprintf("/Open/%d.rml", n), report)
		_, err := s.ask(reader, fmt.Sprintf("/Open/%d.rml", n))
		require.NoError(t, err)
	}
	before := s.Metrics().Parsed
	_, err = s.ask(reader, "/Open/4.rml")
	assert.True(t, err == nil && s.Metrics().Parsed == before, "the newest was forgotten: %v", err)
	_, err = s.ask(reader, "/Open/0.rml")
	assert.True(t, err == nil && s.Metrics().Parsed == before+1, "the oldest is still there: the cache has no end: %v", err)
}

// TestWhatIsRememberedIsBounded in bytes: a few parameters can be large.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures memory")
	}
	const rounds, large = 12, 6 << 20
	s := newService(t, template.Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range rounds {
		text := strings.Builder{}
		for i := range large / 60_000 {
			fmt.Fprintf(&text, "${p%d##%s}", i, strings.Repeat("x", 60_000))
		}
		s.write("/Open/large.rml", fmt.Sprintf("<r>%s</r>%*s", text.String(), n, ""))
		_, err := s.ask(reader, "/Open/large.rml")
		require.NoError(t, err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	assert.LessOrEqual(t, held, int64(32<<20), "%d MB are held behind %d files of %d MB, want 16", held>>20, rounds, large>>20)
}

// onlyFile is a repository in which every path leads to the same content.
type onlyFile func(p []byte, off int64) (int, error)

func (f onlyFile) Open(_ context.Context, _ *identity.Principal, path string) (*repository.File, error) {
	return repository.NewFile(f, repository.Identity{Path: path, Size: int64(len(report))}), nil
}

func (f onlyFile) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

func (f onlyFile) Close() error { return nil }

// startOver runs a service over a repository of one content.
func startOver(t *testing.T, o template.Options, content onlyFile) *template.Service {
	t.Helper()
	return start(t, o, func(*actors.System) template.Files { return content })
}

// TestOnlySoManyFilesAreLookedAtAtATime: the others wait, and are told so.
func TestOnlySoManyFilesAreLookedAtAtATime(t *testing.T) {
	entered, open := make(chan struct{}, 100), make(chan struct{})
	s := startOver(t, template.Options{ParsersMax: 1, WaitMax: time.Second}, func(p []byte, off int64) (int, error) {
		entered <- struct{}{}
		<-open
		return strings.NewReader(report).ReadAt(p, off)
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := s.Parameters(t.Context(), reader, template.Report, "/a.rml")
		assert.NoError(t, err)
	})
	<-entered
	_, err := s.Parameters(t.Context(), reader, template.Report, "/b.rml")
	assert.ErrorIs(t, err, failure.ErrBusy, "a second")
	close(open)
	wg.Wait()
	assert.NoError(t, s.Stop(context.Background()))
	_, err = s.Parameters(t.Context(), reader, template.Report, "/c.rml")
	assert.ErrorIs(t, err, failure.ErrUnavailable, "after Stop")
}

func failing(err error) onlyFile { return func([]byte, int64) (int, error) { return 0, err } }

func TestAFileThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		what    string
		content onlyFile
		want    error
	}{
		{"a file that becomes shorter is no template", strings.NewReader(report[:20]).ReadAt, template.ErrNotTemplate},
		{"a file that cannot be reached may be tried again", failing(fmt.Errorf("%w: reset", failure.ErrUnavailable)), failure.ErrUnavailable},
		{"a disk with a fault is ours", failing(errors.New("input/output error")), failure.ErrInternal},
	} {
		s := startOver(t, template.Options{}, c.content)
		for _, kind := range []template.Kind{template.Report, template.Document} {
			for range 2 { // the second time as well: it is not remembered
				_, err := s.Parameters(t.Context(), reader, kind, "/a."+kind.String())
				assert.ErrorIs(t, err, c.want, "%v %v", c.what, kind)
			}
		}
	}
}
