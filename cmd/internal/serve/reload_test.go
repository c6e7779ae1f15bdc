package serve

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/home"
	"troupe/cmd/internal/clitest"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine/document"
)

func (o *opened) countInstance(workflow string, version uint64) {
	o.t.Helper()
	w := o.store.NewBatch(0)
	w.Add(key.Count(nil, 0, workflow, version), 1)
	require.NoError(o.t, o.store.Commit(w))
}

func disable(t *testing.T, dir string) {
	t.Helper()
	clitest.Edit(t, dir, "identity.yaml", "id: john.doe", "id: john.doe\n    disabled: true")
}

func (o *opened) wantsOut(when string) {
	o.t.Helper()
	assert.Nil(o.t, o.identities.Directory().Principal("john.doe"), "%s: a disabled user stays in", when)
}

// wantsPending compares why a set is not in use; "" stands for one that is.
func wantsPending(t *testing.T, when string, r *reload, part string) {
	t.Helper()
	err := r.ready()
	pending := r.metrics().Pending == 1
	assert.Equal(t, err != nil, pending, "%s: the metrics say pending, %v", when, err)
	switch {
	case part == "" && err != nil:
		t.Errorf("%s: got %v, want the files in use", when, err)
	case part != "" && (err == nil || !strings.Contains(err.Error(), part)):
		t.Errorf("%s: got %v, want it to say %s", when, err, part)
	}
}

// TestADisabledUserIsOutWhateverElseIsFaulty: while the server runs, and when it
// starts. What is faulty is shown until it is corrected.
func TestADisabledUserIsOutWhateverElseIsFaulty(t *testing.T) {
	for _, c := range []struct {
		name, file, before, after string
		access, definitions       string // what is shown
	}{
		{"a form", "forms/feedback.yaml", "type: object", "type: objekt", "", "refused: forms/feedback.yaml:"},
		{"a workflow", "workflows/leave-request.yaml", "target: ", "target: no-", "", "refused: workflows/leave-request.yaml:"},
		{
			"a definition that was edited without a new version", "workflows/leave-request.yaml", "name: Leave request", "name: Other",
			"", "refused: workflows/leave-request.yaml:7: workflow leave-request version 1 is in use and its content changed (raise version to 2)",
		},
		{"the rights", "rights.yaml", "readers: ", "reader: ", `refused: rights.yaml:`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := clitest.SmallHome(t)
			o := mustOpenService(t, dir)
			o.countInstance("leave-request", 1)
			clitest.Edit(t, dir, c.file, c.before, c.after)
			disable(t, dir)
			assert.True(t, o.reloadAll(), "a set that was refused is not tried again")
			o.wantsOut("while the server runs")
			wantsPending(t, "while the server runs", &o.reloads.access, c.access)
			wantsPending(t, "while the server runs", &o.reloads.definitions, c.definitions)
			o.close()

			o = mustOpenService(t, dir)
			defer o.close()
			o.wantsOut("after a start")
			o.wants("after a start", 3, 3)
			wantsPending(t, "after a start", &o.reloads.access, c.access)
			wantsPending(t, "after a start", &o.reloads.definitions, c.definitions)

			clitest.Edit(t, dir, c.file, c.after, c.before)
			assert.False(t, o.reloadAll(), "corrected files are tried again")
			wantsPending(t, "corrected", &o.reloads.access, "")
			wantsPending(t, "corrected", &o.reloads.definitions, "")
		})
	}
}

// TestOnlyAChangeOfWhatIsInUseIsLogged, and that newer files no longer wait.
func TestOnlyAChangeOfWhatIsInUseIsLogged(t *testing.T) {
	const access, definitions = "changed users and rights are in use", "changed workflows and templates are in use"
	dir := clitest.SmallHome(t)
	o := mustOpenService(t, dir)
	defer o.close()
	touch := func(name string) {
		later := time.Now().Add(time.Hour)
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), later, later))
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"nothing", func() {}, nil},
		{"a touch", func() { touch("rights.yaml"); touch("identity.yaml"); touch("workflows/leave-request.yaml") }, nil},
		{"another user", func() { disable(t, dir) }, []string{access}},
		{"another right", func() { clitest.Edit(t, dir, "rights.yaml", "readers: ", "readers:  ") }, []string{access}},
		{"another workflow", func() { clitest.Edit(t, dir, "workflows/leave-request.yaml", "name: Leave request", "name: Other") }, []string{definitions}},
		{"another form", func() { clitest.Edit(t, dir, "forms/feedback.yaml", "type: object", "type:  object") }, []string{definitions}},
		{"another time of a form, which lists show", func() { touch("forms/feedback.yaml") }, []string{definitions}},
		{"a fault", func() {
			clitest.Edit(t, dir, "identity.yaml", "users:", "usrs:")
		}, nil},
		{"no fault any more", func() { clitest.Edit(t, dir, "identity.yaml", "usrs:", "users:") }, []string{access, definitions}},
	} {
		o.log.Reset()
		step.do()
		o.reloadAll()
		var got []string
		for _, line := range []string{access, definitions} {
			if strings.Contains(o.log.String(), line) {
				got = append(got, line)
			}
		}
		assert.True(t, slices.Equal(got, step.want), "%s: got %q in the log, want %q", step.name, got, step.want)
		assert.NotContains(t, o.log.String(), `:""`, "%s: a field of the log is empty:\n%s", step.name, o.log)
	}
}

// TestFilesThatAreNotReadAreLogged once.
func TestFilesThatAreNotReadAreLogged(t *testing.T) {
	o := mustOpenService(t, clitest.SmallHome(t))
	defer o.close()
	clitest.PutFile(t, o.config.Home, "workflows/old/small.yaml", smallFlow)
	o.reloadAll()
	o.wantsLog("a file in a folder below", `"level":"warn","file":"workflows/old/small.yaml"`)
	if o.reloadAll(); o.log.Len() > 0 {
		t.Errorf("the same is logged again: %s", o.log)
	}
}

// TestAStoreThatRefusesForAMoment keeps nobody in, and gets the definitions later.
func TestAStoreThatRefusesForAMoment(t *testing.T) {
	dir := clitest.SmallHome(t)
	disk := storetest.NewDisk()
	o := mustOpenServiceOn(t, dir, disk, time.Minute)
	disk.SetFree(0)
	storetest.AwaitAccepting(t, o.store, false)
	clitest.PutFile(t, dir, "workflows/small.yaml", smallFlow)
	disable(t, dir)
	assert.True(t, o.reloadAll(), "what the store refused is not tried again")
	o.wantsOut("on a full disk")
	o.wants("on a full disk", 3, 3)
	wantsPending(t, "on a full disk", &o.reloads.definitions, "retrying: publish: disk is full")
	disk.SetFree(1 << 40)
	storetest.AwaitAccepting(t, o.store, true)
	assert.False(t, o.reloadDefinitions(), "what was taken is tried again")
	o.wants("with space again", 4, 3)
	wantsPending(t, "with space again", &o.reloads.definitions, "")
	o.close()
}

// mustOpenServiceOn opens the service with its store on a disk of the test.
func mustOpenServiceOn(t *testing.T, dir string, disk *storetest.Disk, commitWaitMax time.Duration) *opened {
	t.Helper()
	store, err := disk.Open(persistence.Options{Log: zerolog.Nop(), CommitWaitMax: commitWaitMax, Shards: 2, MemTableBytes: 64 << 10})
	require.NoError(t, err)
	return openServiceOn(t, dir, store)
}

// TestASetThatIsInUseButNotDurableSaysSo, until the disk has confirmed it: what is
// changed meanwhile is not taken over.
func TestASetThatIsInUseButNotDurableSaysSo(t *testing.T) {
	dir := clitest.SmallHome(t)
	disk := storetest.NewDisk()
	mustOpenServiceOn(t, dir, disk, time.Minute).close()
	o := mustOpenServiceOn(t, dir, disk, 300*time.Millisecond)
	defer o.close()
	// What works in the background would have commits of its own under way, and the store
	// refuses all while an old one does not get through.
	require.NoError(t, errors.Join(o.router.Stop(t.Context()), o.store.AwaitDurable()))
	disk.Hold()
	clitest.PutFile(t, dir, "workflows/small.yaml", smallFlow)
	o.log.Reset()
	assert.True(t, o.reloadDefinitions(), "what is not known to be durable is not asked again")
	o.wants("while the disk hangs", 4, 3)
	const want = "in use, but not confirmed as durable yet"
	wantsPending(t, "while the disk hangs", &o.reloads.definitions, want)
	assert.NotContains(t, o.log.String(), "accepted before", "the set before is not in use any more: %s", o.log)
	o.wantsLog("while the disk hangs", "workflows and templates are "+want)
	if o.reloadDefinitions(); o.log.Len() > 0 {
		t.Errorf("the same is logged again: %s", o.log)
	}
	clitest.PutFile(t, dir, "workflows/other.yaml", strings.Replace(smallFlow, "small", "other", 1))
	o.reloadDefinitions()
	o.wants("changed while the disk hangs", 4, 3)
	wantsPending(t, "changed while the disk hangs", &o.reloads.definitions, "not in use yet, retrying")
	disk.Release()
	storetest.AwaitAccepting(t, o.store, true)
	for range 100 { // a slow machine may need more than one
		if !o.reloadDefinitions() {
			break
		}
	}
	o.wants("confirmed", 5, 3)
	wantsPending(t, "confirmed", &o.reloads.definitions, "")
}

// TestTheSetOfDefinitionsIsOneCommit: a crash leaves all of it or nothing.
func TestTheSetOfDefinitionsIsOneCommit(t *testing.T) {
	dir := clitest.SmallHome(t)
	o := mustOpenService(t, dir)
	defer o.close()
	if err := o.router.Stop(t.Context()); err != nil { // it would build the new indexes
		t.Fatal(err)
	}
	before := o.store.Metrics().Appended
	clitest.PutFile(t, dir, "workflows/small.yaml", smallFlow)
	clitest.PutFile(t, dir, "forms/plain.yaml", plainForm)
	o.reloadAll()
	o.wants("a workflow and a form", 4, 4)
	n := o.store.Metrics().Appended - before
	assert.Equal(t, uint64(1), n, "a workflow and a form")
}

// TestOnlyTheFirstFaultsAreShown, each with its place, in what a part of /readyz
// has room for, and logged once.
func TestOnlyTheFirstFaultsAreShown(t *testing.T) {
	var log strings.Builder
	var faults document.Faults
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		faults = append(faults, document.Fault{File: name + ".yaml", Line: 2, Reason: "unknown " + strings.Repeat("x", 200)})
	}
	r := &reload{what: "workflows"}
	for range 2 {
		again, _ := r.ended(zerolog.New(&log), home.Digest{}, faults)
		assert.True(t, again, "what was refused is not tried again")
	}
	got := r.ready().Error()
	for _, part := range []string{"a.yaml:2: unknown x", "b.yaml:2:", "c.yaml:2:", "; 2 more"} {
		assert.Contains(t, got, part)
	}
	n := r.metrics().Faults
	assert.True(t, len(got) <= 512 && n == 5, "got %d bytes, more than are shown, or %d faults in the metrics, want 5", len(got), n)
	assert.Equal(t, 6, strings.Count(log.String(), "\n"), log.String())
}
