package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/repository"
	"troupe/persistence"
	"troupe/statemachine"
)

// opened is a service with its text files taken over, without a router and
// without a port. The test says when files are looked at.
type opened struct {
	*service
	t   *testing.T
	log *strings.Builder
}

// openService starts as serve does, up to the text files.
func openService(t *testing.T, dir string) (*opened, error) {
	t.Helper()
	c := newConfig()
	c.home, c.store.Shards, c.store.MemTableBytes, c.store.CacheBytes = dir, 2, 64<<10, 1<<20
	store, err := openStore(c, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return openServiceOn(t, c, store)
}

func openServiceOn(t *testing.T, c *config, store *persistence.Store) (*opened, error) {
	t.Helper()
	o := &opened{service: &service{config: c, store: store}, t: t, log: &strings.Builder{}}
	o.service.log = zerolog.New(o.log)
	o.started.push(closing{store})
	var err error
	if o.parser, err = statemachine.NewParser(statemachine.ParserOptions{}); err != nil {
		t.Fatal(err)
	}
	if o.catalog, err = catalog.Open(o.store, o.parser, o.service.log); err != nil {
		t.Fatal(err)
	}
	if o.templates, err = formportal.OpenTemplates(o.store, o.service.log); err != nil {
		t.Fatal(err)
	}
	if err := o.readHome(); err != nil {
		return o, err
	}
	o.system = actors.NewSystem(zerolog.Nop())
	o.started.push(o.system)
	if o.files, err = o.config.newFiles(zerolog.Nop()); err != nil {
		t.Fatal(err)
	}
	o.started.push(closing{o.files})
	o.repository = repository.Start(repository.Options{System: o.system, Source: o.files, Rights: o.rights, Log: zerolog.Nop()})
	o.started.push(o.repository)
	return o, nil
}

func mustOpenService(t *testing.T, dir string) *opened {
	t.Helper()
	o, err := openService(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *opened) close() {
	o.t.Helper()
	if err := o.stop(); err != nil {
		o.t.Error(err)
	}
}

// reloadAll looks at the text files as the watcher has it done after a change.
func (o *opened) reloadAll() (again bool) {
	access := o.reloadAccess()
	return o.reloadDefinitions() || access
}

// wants compares what is offered.
func (o *opened) wants(when string, workflows, templates int) {
	o.t.Helper()
	if w, f := o.catalog.Len(), o.templates.Len(); w != workflows || f != templates {
		o.t.Errorf("%s: got %d workflows and %d templates, want %d and %d\n%s", when, w, f, workflows, templates, o.log)
	}
}

func (o *opened) wantsLog(when, part string) {
	o.t.Helper()
	if !strings.Contains(o.log.String(), part) {
		o.t.Errorf("%s: the log lacks %s:\n%s", when, part, o.log)
	}
	o.log.Reset()
}

func putFile(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func removeFile(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

const (
	plainForm   = "id: plain\naccess: {roles: [employee]}\nschema: {type: object}\n"
	faultyForm  = "id: plain\naccess: {roles: [employe]}\nschema: {type: object}\n"
	smallFlow   = "id: small\nstateMachines: {m: {states: {a: {on: {go: b}}, b: {type: final}}}}\n"
	faultyFlow  = "id: small\nstateMachines: {m: {states: {a: {on: {go: c}}, b: {type: final}}}}\n"
	refusedFlow = "id: small\nindexes: [svcPublic.0.0.0.0.0.0.0.0.0.0.0.0]\nstateMachines: {m: {states: {a: {on: {go: b}}, b: {type: final}}}}\n"
)

func TestWorkflowsAndTemplatesAreTakenTogetherOrNotAtAll(t *testing.T) {
	dir := exampleHome(t)
	o := mustOpenService(t, dir)
	defer o.close()
	o.wants("the example", 2, 3)

	putFile(t, dir, "workflows/small.yaml", faultyFlow)
	putFile(t, dir, "forms/plain.yaml", plainForm)
	o.reloadAll()
	o.wants("a faulty workflow beside a new form", 2, 3)
	o.wantsLog("a faulty workflow", `"file":"workflows/small.yaml"`)

	putFile(t, dir, "workflows/small.yaml", smallFlow)
	putFile(t, dir, "forms/plain.yaml", faultyForm)
	o.reloadAll()
	o.wants("a faulty form beside a new workflow", 2, 3)
	o.wantsLog("a faulty form", `"file":"forms/plain.yaml","line":2,"reason":"unknown role \"employe\"","suggestion":"did you mean \"employee\"?"`)

	putFile(t, dir, "workflows/small.yaml", refusedFlow)
	putFile(t, dir, "forms/plain.yaml", plainForm)
	o.reloadAll()
	o.wants("a workflow that only publishing refuses", 2, 3)
	o.wantsLog("a refused workflow", `"file":"workflows/small.yaml"`)

	putFile(t, dir, "workflows/small.yaml", smallFlow)
	o.reloadAll()
	o.wants("everything right", 3, 4)
	o.wantsLog("everything right", "changed workflows and templates are in use")

	removeFile(t, dir, "workflows/leave-request.yaml")
	o.reloadAll()
	o.wants("a form of a workflow that is gone", 3, 4)
	o.wantsLog("a form of a workflow that is gone", `"file":"forms/leave-form.yaml"`)
	removeFile(t, dir, "forms/leave-form.yaml")
	o.reloadAll()
	o.wants("both gone", 2, 3)
	if o.templates.Get(form.Plain, "leave-form") != nil {
		t.Error("a template whose file is gone is offered")
	}
}

func TestARestartOnFaultyTemplatesGoesOn(t *testing.T) {
	dir := exampleHome(t)
	o := mustOpenService(t, dir)
	modified := o.templates.Get(form.Plain, "leave-form").Modified
	o.close()
	for _, test := range []struct{ name, file, text string }{
		{"a faulty form", "forms/leave-form.yaml", faultyForm},
		{"a faulty checklist", "checklists/workplace-safety.yaml", "id: [\n"},
		{"two forms of one id", "forms/twin.yaml", strings.Replace(plainForm, "plain", "feedback", 1)},
		{"a form that is too large", "forms/large.yaml", plainForm + strings.Repeat("# \n", 1<<19)},
		{"a faulty workflow", "workflows/leave-request.yaml", faultyFlow},
		{"a role that templates name is gone", "identity.yaml", "roles: [{id: employee}, {id: manager}, {id: purchasing}]\nusers: [{id: ann, roles: [employee]}]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(dir, test.file)
			before, err := os.ReadFile(path)
			putFile(t, dir, test.file, test.text)
			o := mustOpenService(t, dir)
			o.wants("after the restart", 2, 3)
			o.wantsLog("after the restart", "the set accepted before stays in use")
			if got := o.templates.Enabled(form.Plain, "leave-form"); got == nil || !got.Modified.Equal(modified) {
				t.Errorf("got %+v, want the template of %s", got, modified)
			}
			if list := o.templates.OfRole(form.Checklist, "inspector"); len(list) != 1 {
				t.Errorf("checklists of the inspector: got %d, want 1", len(list))
			}
			o.close()
			if err != nil {
				removeFile(t, dir, test.file)
			} else {
				putFile(t, dir, test.file, string(before))
			}
		})
	}
}

// TestARestartOnTheSameTemplatesWritesNothing, so that it works on a full disk.
func TestARestartOnTheSameTemplatesWritesNothing(t *testing.T) {
	dir := exampleHome(t)
	mustOpenService(t, dir).close()
	o := mustOpenService(t, dir)
	defer o.close()
	if n := o.store.Metrics().Appended; n != 0 {
		t.Errorf("the same files: got %d writes, want 0", n)
	}
	o.reloadAll()
	if n := o.store.Metrics().Appended; n != 0 {
		t.Errorf("a reload of the same files: got %d writes, want 0", n)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "forms", "feedback.yaml"), later, later); err != nil {
		t.Fatal(err)
	}
	o.reloadAll()
	if got := o.templates.Get(form.Plain, "feedback").Modified; !got.Equal(later.Truncate(time.Millisecond)) {
		t.Errorf("time of modification: got %v, want %v", got, later)
	}
}
