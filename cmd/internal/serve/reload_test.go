package serve

import (
	"errors"
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
	pending := r.metrics().Pending
	assert.Equal(t, err != nil, pending, "%s: the metrics say pending, %v", when, err)
	switch {
	case part == "" && err != nil:
		t.Errorf("%s: got %v, want the files in use", when, err)
	case part != "" && (err == nil || !strings.Contains(err.Error(), part)):
		t.Errorf("%s: got %v, want it to say %s", when, err, part)
	}
}

// TestAStoreThatRefusesForAMoment keeps nobody in, and gets the definitions later.
func TestAStoreThatRefusesForAMoment(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	n := r.metrics().Errors
	assert.True(t, len(got) <= 512 && n == 5, "got %d bytes, more than are shown, or %d faults in the metrics, want 5", len(got), n)
	assert.Equal(t, 6, strings.Count(log.String(), "\n"), log.String())
}
