package serve

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/form"
	"troupe/actors/home"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/metric"
	"troupe/persistence"
)

// opened is a service with its text files taken over, without a port. The test says when files are looked at.
type opened struct {
	*service
	t   *testing.T
	log *strings.Builder
}

// newService is a service on a home that start has not been called for. It logs
// nothing, the logs of its store are short, and its ports are free ones.
func newService(dir string) *service {
	c := config.New()
	c.Home, c.Gateway.Addr, c.Admin = dir, "127.0.0.1:0", "127.0.0.1:0"
	c.Store.Shards, c.Store.MemTableBytes, c.Store.CacheBytes = 2, 64<<10, 1<<20
	c.Cluster.Pace, c.Cluster.Settle = 50*time.Millisecond, 250*time.Millisecond
	c.Store.CommitWaitMax = 2 * time.Minute // a machine with much to do is not taken for a disk that hangs
	return &service{config: c, log: zerolog.Nop(), latency: metric.NewLatency()}
}

// bareHome is a home without definitions: what the example has takes a while to be read.
func bareHome(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	clitest.PutFile(t, dir, home.IdentityFile, "roles: [{id: employee}]\n")
	return dir
}

// openServiceOn starts as serve does with a store, without ports and watching. What
// works in goroutines of its own does not log.
func openServiceOn(t *testing.T, dir string, store *persistence.Store) *opened {
	t.Helper()
	o := &opened{service: newService(dir), t: t, log: &strings.Builder{}}
	o.openOn(store)
	return o
}

func (o *opened) openOn(store *persistence.Store) {
	t := o.t
	t.Helper()
	o.store = store
	o.started.push(closing{store})
	var err error
	o.files, err = o.config.OpenFiles(zerolog.Nop())
	require.NoError(t, err)
	o.started.push(closing{o.files})
	logged := zerolog.New(o.log)
	for _, step := range []struct {
		log zerolog.Logger
		do  func() error
	}{{zerolog.Nop(), func() error { return o.openDefinitions(context.Background()) }}, {logged, o.readHome}, {zerolog.Nop(), o.run}} {
		o.service.log = step.log
		require.NoError(t, step.do())
	}
	o.service.log = logged
}

func mustOpenService(t *testing.T, dir string) *opened {
	t.Helper()
	store, err := newService(dir).config.OpenStore(zerolog.Nop())
	require.NoError(t, err)
	return openServiceOn(t, dir, store)
}

func (o *opened) close() {
	o.t.Helper()
	assert.NoError(o.t, o.stop())
}

// reloadAll looks at the text files as the watcher has it done after a change.
func (o *opened) reloadAll() (again bool) {
	access := o.reloadAccess()
	return o.reloadDefinitions() || access
}

func (o *opened) wants(when string, workflows, templates int) {
	o.t.Helper()
	w, f := o.catalog.Len(), o.formTemplates.Len()
	assert.True(o.t, w == workflows && f == templates, "%s: got %d workflows and %d templates, want %d and %d\n%s", when, w, f, workflows, templates, o.log)
}

func (o *opened) wantsLog(when, part string) {
	o.t.Helper()
	assert.Contains(o.t, o.log.String(), part, "%s: the log lacks, %s", when, o.log)
	o.log.Reset()
}

const (
	plainForm  = "id: plain\naccess: {roles: [employee]}\nschema: {type: object}\n"
	faultyForm = "id: plain\naccess: {roles: [employe]}\nschema: {type: object}\n"
	smallFlow  = "id: small\nstateMachines: {m: {states: {a: {on: {go: b}}, b: {type: final}}}}\n"
)

// TestARestartOnFaultyTemplatesGoesOn with those that were accepted before.
func TestARestartOnFaultyTemplatesGoesOn(t *testing.T) {
	t.Parallel()
	dir := clitest.SmallHome(t)
	o := mustOpenService(t, dir)
	modified := o.formTemplates.Get(form.KindForm, "leave-form").Modified
	o.close()
	clitest.PutFile(t, dir, "checklists/workplace-safety.yaml", "id: [\n")
	clitest.PutFile(t, dir, "forms/leave-form.yaml", faultyForm)
	clitest.PutFile(t, dir, "forms/large.yaml", plainForm+strings.Repeat("# \n", 1<<19))
	for _, name := range []string{"faulty templates", "a role that templates name is gone as well"} {
		o := mustOpenService(t, dir)
		o.wants(name, 3, 3)
		o.wantsLog(name, "the files accepted before stay in use")
		got := o.formTemplates.Enabled(form.KindForm, "leave-form")
		assert.True(t, got != nil && got.Modified.Equal(modified), "%s: got %+v, want the template of %s", name, got, modified)
		assert.Len(t, o.formTemplates.OfRole(form.KindChecklist, "inspector"), 1, "%s: checklists of the inspector", name)
		o.close()
		clitest.PutFile(t, dir, "identity.yaml", "roles: [{id: employee}, {id: manager}, {id: purchasing}]\nusers: [{id: ann, roles: [employee]}]\n")
	}
}

// TestARestartOnTheSameTemplatesWritesNothing, so that it works on a full disk. There are no schedules and no index: what the
// background writes of them comes at some time of the first life or the second.
func TestARestartOnTheSameTemplatesWritesNothing(t *testing.T) {
	t.Parallel()
	dir := clitest.SmallHome(t)
	clitest.RemoveFile(t, dir, "workflows/stock-take.yaml")
	clitest.Edit(t, dir, "workflows/leave-request.yaml", "indexes: [svcPublic.requester]\n", "")
	mustOpenService(t, dir).close()
	o := mustOpenService(t, dir)
	defer o.close()
	assert.Zero(t, o.store.Metrics().Appended, "the same files")
	o.reloadAll()
	assert.Zero(t, o.store.Metrics().Appended, "a reload of the same files")
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "forms", "feedback.yaml"), later, later))
	o.reloadAll()
	got := o.formTemplates.Get(form.KindForm, "feedback").Modified
	assert.True(t, got.Equal(later.Truncate(time.Millisecond)), "time of modification: got %v, want %v", got, later)
}
