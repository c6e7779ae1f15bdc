package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
)

// retires demands what becomes of a retirement.
func (c *Catalog) retires(t *testing.T, what string, by *identity.Principal, workflow string, version uint64, want error, gone ...uint64) {
	t.Helper()
	got, err := c.Retire(workflow, version, by)
	if !errors.Is(err, want) || !slices.Equal(got, gone) {
		t.Errorf("%s: got %v, %v, want %v, %v", what, got, err, gone, want)
	}
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

	w := store.NewWritesIn(0, store.Epoch(0))
	count := persistence.CountKey(nil, 0, "door", 2)
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
	if _, err := c.Find("door", 3); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("a retired version: got %v, want ErrNotFound", err)
	}
	w = store.NewWritesIn(0, store.Epoch(0))
	w.Add(count, -1)
	store.Append(w, done)
	must(t, <-done)
	c = openCatalog(t, store)
	c.wantCreatable(t, "after a restart", "door", 2)
	c.retires(t, "all", ann, "door", 0, nil, 1, 2)
	c.wantCreatable(t, "nothing left", "door", 0)
	all, err := c.List()
	must(t, err)
	if len(all) != 1 || all[0].ID != "plain" {
		t.Errorf("got the list %v", all)
	}
	c = openCatalog(t, store)
	c.refuses(t, "a retired id is not for others", mallory, numbered("1", ""), onlyAnn)
	c.takes(t, "its owner", ann, numbered("1", ""))
	c.retires(t, "by whoever has the store", nil, "door", 1, nil, 1)
	must(t, c.Publish(nil)) // the file is gone
	c.retires(t, "a workflow without a file", root, "plain", 0, nil, 1)
	must(t, c.Publish(c.sources(t, plain)))
	c.wantCreatable(t, "the file is back", "plain", 1)
}

func TestAPublisherHasABound(t *testing.T) {
	c := openCatalog(t, openStore(t))
	named := func(n int) string { return strings.Replace(door, "id: door", fmt.Sprintf("id: door-%d", n), 1) }
	for n := range workflowsMax {
		if _, err := c.PublishDefinition(c.single(t, named(n)), ann); err != nil {
			t.Fatal(err)
		}
	}
	more := c.single(t, named(workflowsMax))
	for _, publish := range []func(Source, *identity.Principal) (bool, error){c.CheckDefinition, c.PublishDefinition} {
		if _, err := publish(more, ann); !errors.Is(err, failure.ErrConflict) || !strings.Contains(failure.Of(err).Reason, "ann has published 100 workflows") {
			t.Errorf("got %v, want ErrConflict", err)
		}
	}
	for _, err := range []error{
		second(c.CheckDefinition(more, mallory)), second(c.CheckDefinition(more, root)),
		second(c.PublishDefinition(c.single(t, strings.Replace(named(0), "version: 1", "version: 2", 1)), ann)),
	} {
		must(t, err)
	}
	c.retires(t, "one of them", ann, "door-7", 0, nil, 1)
	if _, err := c.PublishDefinition(more, ann); err != nil {
		t.Errorf("after one is retired: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
