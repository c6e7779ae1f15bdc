package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence/key"
)

// retires demands what becomes of a retirement.
func (c *Catalog) retires(t *testing.T, what string, by *identity.Principal, workflow string, version uint64, want error, gone ...uint64) {
	t.Helper()
	got, err := c.Retire(t.Context(), workflow, version, by)
	assert.True(t, errors.Is(err, want) && slices.Equal(got, gone), "%s: got %v, %v, want %v, %v", what, got, err, gone, want)
}

func TestWhatNobodyUsesIsRetired(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	for _, version := range []string{"1", "2", "3"} {
		c.takes(t, "ann", ann, numbered(version, ""))
	}
	must(t, c.Publish(c.sources(t, plain)))
	c.retires(t, "a workflow that is not there", root, "nobody", 0, failure.ErrNotFound)
	c.retires(t, "a version that is not there", root, "door", 4, failure.ErrNotFound)
	c.retires(t, "not an owner", mallory, "door", 1, failure.ErrForbidden)
	c.retires(t, "a file of the home", root, "plain", 1, failure.ErrConflict)
	c.retires(t, "a file of the home, as a whole", nil, "plain", 0, failure.ErrConflict)

	w := store.NewBatchIn(0, store.Epoch(0))
	count := key.Count(nil, 0, "door", 2)
	w.Add(count, 1)
	done := make(confirmation, 1)
	store.Append(w, done)
	must(t, <-done)
	c.retires(t, "an instance has it", ann, "door", 2, failure.ErrInUse)
	c.retires(t, "an instance has one of all", ann, "door", 0, failure.ErrInUse)
	pin, err := c.PinVersion("door", 1)
	must(t, err)
	c.retires(t, "an instance is being created", root, "door", 1, failure.ErrInUse)
	pin.Release()
	c.wantCreatable(t, "after what was refused", "door", 3)

	c.retires(t, "the newest", ann, "door", 3, nil, 3)
	c.wantCreatable(t, "the one before", "door", 2)
	_, err = c.Find("door", 3)
	assert.ErrorIs(t, err, failure.ErrNotFound, "a retired version")
	w = store.NewBatchIn(0, store.Epoch(0))
	w.Add(count, -1)
	store.Append(w, done)
	must(t, <-done)
	c = openCatalog(t, store)
	c.wantCreatable(t, "after a restart", "door", 2)
	c.retires(t, "all", ann, "door", 0, nil, 1, 2)
	c.wantCreatable(t, "nothing left", "door", 0)
	all, err := c.List()
	must(t, err)
	assert.True(t, len(all) == 1 && all[0].ID == "plain", "got the list %v", all)
	c = openCatalog(t, store)
	c.refuses(t, "a retired id is not for others", mallory, numbered("1", ""), onlyAnn)
	c.takes(t, "its owner", ann, numbered("1", ""))
	c.retires(t, "by whoever has the store", nil, "door", 1, nil, 1)
	must(t, c.Publish(nil)) // the file is gone
	c.retires(t, "a workflow without a file", root, "plain", 0, nil, 1)
	must(t, c.Publish(c.sources(t, plain)))
	c.wantCreatable(t, "the file is back", "plain", 1)
}

// TestAVersionOfAFileStays: any that a file of the home names, also below the newest and after a restart.
func TestAVersionOfAFileStays(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	must(t, c.Publish(c.sources(t, doorThree, door)))
	must(t, c.Publish(c.sources(t, doorTwo, doorThree, door)))
	for _, when := range []string{"at once", "after a restart"} {
		for version := range uint64(4) {
			c.retires(t, when, root, "door", version, failure.ErrConflict)
		}
		c = openCatalog(t, store)
	}
	must(t, c.Publish(c.sources(t, doorThree, doorTwo)))
	c.retires(t, "its file is gone", root, "door", 1, nil, 1)
	c.retires(t, "the other's is there", root, "door", 2, failure.ErrConflict)
	must(t, c.Publish(c.sources(t, doorThree)))
	c = openCatalog(t, store)
	c.retires(t, "its file is gone, too", root, "door", 2, nil, 2)
	w := store.NewBatch(key.Meta)
	w.Delete(key.Setting(nil, olderSetting))
	must(t, store.Commit(w))
	c = openCatalog(t, store)
	c.retires(t, "of a store from before", root, "door", 3, failure.ErrConflict)
}

// TestAPublisherHasABound: small ones hold as those that everybody has do.
func TestAPublisherHasABound(t *testing.T) {
	c := openCatalog(t, openStore(t))
	assert.Equal(t, bounds{workflows: 100, versions: 500}, c.bounds)
	c.bounds = bounds{workflows: 3, versions: 4}
	named := func(n int) string { return strings.Replace(door, "id: door", fmt.Sprintf("id: door-%d", n), 1) }
	later := func(version int) string {
		return strings.Replace(named(0), "version: 1", fmt.Sprintf("version: %d", version), 1)
	}
	for n := range 3 {
		c.takes(t, "a workflow", ann, named(n))
	}
	const many = "ann has published 3 workflows, including retired ones, which is the limit: ask a holder of mod-admin"
	c.isTooMany(t, ann, named(3), many)
	c.takes(t, "of another", mallory, named(3))
	c.takes(t, "of an administrator", root, named(4))
	for _, version := range []int{2, 3, 7} {
		c.takes(t, "a version", ann, later(version))
	}
	for _, version := range []int{4, 8} {
		c.isTooMany(t, ann, later(version), "workflow door-0 has 4 versions, which is the limit: retire unused ones")
	}
	c.takes(t, "what there is already", ann, later(3))
	c.takes(t, "of an administrator", root, later(8))
	c.isTooMany(t, ann, later(9), "workflow door-0 has 5 versions, which is the limit: retire unused ones")
	c.retires(t, "some versions", ann, "door-0", 2, nil, 2)
	c.retires(t, "some versions", ann, "door-0", 1, nil, 1)
	c.takes(t, "after some are retired", ann, later(9))
	c.isTooMany(t, ann, later(10), "workflow door-0 has 4 versions, which is the limit: retire unused ones")
	c.retires(t, "a workflow", ann, "door-1", 0, nil, 1)
	c.isTooMany(t, ann, named(5), many)
	c.takes(t, "its id stays hers", ann, named(1))
	c.retires(t, "a workflow", ann, "door-2", 0, nil, 1)
	c.isTooMany(t, ann, named(5), many)
	must(t, c.Publish(c.sources(t, named(2))))
	c.takes(t, "after a home has taken one", ann, named(5))
}

// isTooMany demands that a user can neither publish a definition nor check it, because of a bound.
func (c *Catalog) isTooMany(t *testing.T, by *identity.Principal, text, message string) {
	t.Helper()
	for _, publish := range []func(Source, *identity.Principal) (bool, error){c.CheckDefinition, c.PublishDefinition} {
		_, err := publish(c.single(t, text), by)
		assert.True(t, errors.Is(err, failure.ErrConflict) && failure.Of(err).Reason == message, "got %v, want ErrConflict: %s", err, message)
	}
}

// TestWhoRetiredIsLogged: with what, and nothing else is.
func TestWhoRetiredIsLogged(t *testing.T) {
	var log bytes.Buffer
	c := openCatalog(t, openStore(t))
	for _, version := range []string{"1", "2", "3"} {
		c.takes(t, "ann", ann, numbered(version, ""))
	}
	c.log = zerolog.New(&log)
	said := func(what, want string) {
		t.Helper()
		if want != "" {
			want = `{"level":"info","workflow":"door",` + want + `,"message":"versions of a workflow were retired"}` + "\n"
		}
		assert.Equal(t, want, log.String(), what)
		log.Reset()
	}
	c.retires(t, "not an owner", mallory, "door", 1, failure.ErrForbidden)
	c.retires(t, "not there", root, "door", 4, failure.ErrNotFound)
	said("what was refused", "")
	c.retires(t, "one", root, "door", 2, nil, 2)
	said("one", `"versions":[2],"user":"root"`)
	c.retires(t, "all", ann, "door", 0, nil, 1, 3)
	said("all", `"versions":[1,3],"user":"ann"`)
}
