package catalog

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence/clocktest"
	"troupe/statemachine/document"
)

// The same workflow in several versions, and one with other content.
var (
	door      = strings.Replace(plain, "id: plain", "id: door", 1)
	doorTwo   = strings.Replace(door, "version: 1", "version: 2", 1)
	doorThree = strings.Replace(door, "version: 1", "version: 3", 1)
	doorOther = strings.Replace(door, "go:", "move:", 1)
)

// single is a definition as a request brings it.
func (c *Catalog) single(t *testing.T, text string) Source {
	t.Helper()
	s := c.sources(t, text)[0]
	s.File = "body.yaml"
	return s
}

// publishSingle publishes a definition.
func (c *Catalog) publishSingle(t *testing.T, text string) (current bool) {
	t.Helper()
	current, err := c.PublishDefinition(c.single(t, text), root)
	must(t, err)
	return current
}

// wantCreatable compares which version new instances of a workflow get; 0 is none.
func (c *Catalog) wantCreatable(t *testing.T, when, workflow string, version uint64) {
	t.Helper()
	d, err := c.Creatable(workflow)
	switch {
	case version == 0 && !errors.Is(err, failure.ErrNotFound):
		t.Errorf("%s: %s: got %v, %v, want ErrNotFound", when, workflow, d, err)
	case version != 0 && (err != nil || d.Version != version):
		t.Errorf("%s: %s: got %v, %v, want version %d", when, workflow, d, err, version)
	}
}

func TestAPublishedDefinitionStaysBesideTheFiles(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	must(t, c.Publish(c.sources(t, plain)))
	assert.True(t, c.publishSingle(t, door), "the only version is not the current one")
	c.wantCreatable(t, "published", "door", 1)
	for _, when := range []string{"the files are read again", "after a restart"} {
		must(t, c.Publish(c.sources(t, plain)))
		c.wantCreatable(t, when, "door", 1)
		c.wantCreatable(t, when, "plain", 1)
		c = openCatalog(t, store)
	}
	must(t, c.Publish(nil))
	c.wantCreatable(t, "the files are gone", "door", 1)
	c.wantCreatable(t, "the files are gone", "plain", 0)
	text, err := c.Text("door", 0)
	assert.True(t, err == nil && text.File == "body.yaml" && text.Text == door && text.Current, "got %+v, %v", text, err)
}

func TestTheHighestPublishedVersionIsTheCurrentOne(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	for _, step := range []struct {
		text            string
		current         bool
		version, number uint64 // the current one, and that of the text
	}{{doorTwo, true, 2, 2}, {door, false, 2, 1}, {doorThree, true, 3, 3}, {doorTwo, false, 3, 2}, {doorThree, true, 3, 3}} {
		checked, err := c.CheckDefinition(c.single(t, step.text), root)
		must(t, err)
		current := c.publishSingle(t, step.text)
		assert.True(t, current == step.current && checked == step.current, "%v %v %v %v", step.number, current, checked, step.current)
		c.wantCreatable(t, "published", "door", step.version)
		c = openCatalog(t, store)
		c.wantCreatable(t, "after a restart", "door", step.version)
	}
}

func TestAWorkflowHasOneSource(t *testing.T) {
	c := openCatalog(t, openStore(t))
	must(t, c.Publish(c.sources(t, plain)))
	for _, publish := range []func(Source, *identity.Principal) (bool, error){c.PublishDefinition, c.CheckDefinition} {
		_, err := publish(c.single(t, strings.Replace(plain, "version: 1", "version: 2", 1)), root)
		assert.True(t, errors.Is(err, failure.ErrConflict) && strings.Contains(failure.Of(err).Reason, "workflows/0.yaml"), err)
	}
	c.publishSingle(t, door)
	for _, publish := range []func([]Source) error{c.Check, func(set []Source) error { return c.Publish(set) }} {
		err := publish(c.sources(t, plain, doorTwo))
		var faults document.Faults
		if !errors.As(err, &faults) || len(faults) != 1 || faults[0].File != "workflows/1.yaml" || faults[0].Line != 1 || !strings.Contains(faults[0].Reason, "workflow door is already published") {
			t.Errorf("a file that names what is published: got %v, want one fault with the file", err)
		}
	}
	c.wantCreatable(t, "after what was refused", "door", 1)
	must(t, c.Publish(nil))
	c.publishSingle(t, plain) // its file is gone, so it has no source
	c.wantCreatable(t, "from now on", "plain", 1)
	assert.Error(t, c.Check(c.sources(t, plain)), "the file that is back is no fault")
}

// TestAPublishedVersionNeverChanges: not even while nobody has an instance of it.
func TestAPublishedVersionNeverChanges(t *testing.T) {
	c := openCatalog(t, openStore(t))
	c.publishSingle(t, door)
	c.publishSingle(t, doorTwo)
	for _, publish := range []func(Source, *identity.Principal) (bool, error){c.PublishDefinition, c.CheckDefinition} {
		_, err := publish(c.single(t, doorOther), root)
		assert.True(t, errors.Is(err, failure.ErrExists) && strings.Contains(failure.Of(err).Reason, "raise version to 3"), err)
	}
	text, err := c.Text("door", 1)
	assert.True(t, err == nil && text.Text == door, "got %+v, %v, want the text before", text, err)
	var faults document.Faults
	_, err = c.CheckDefinition(c.single(t, "indexes: ['svcPublic.0.1.2.3.4']\n"+doorThree), root)
	assert.True(t, errors.As(err, &faults) && faults[0].File == "body.yaml", "an index that cannot be: got %v, want its fault", err)
}

func TestCheckingADefinitionChangesNothing(t *testing.T) {
	c := openCatalog(t, openStore(t))
	current, err := c.CheckDefinition(c.single(t, door), root)
	assert.True(t, err == nil && current, "got %t, %v", current, err)
	c.wantCreatable(t, "checked", "door", 0)
	all, err := c.List()
	assert.True(t, err == nil && len(all) == 0, "got %+v, %v", all, err)
}

// TestADefinitionPublishedInACluster: the leader takes it, and every node reads it from its store.
func TestADefinitionPublishedInACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLate(t)
		defer l.stop(t)
		for _, publish := range []func(Source, *identity.Principal) (bool, error){l.second.PublishDefinition, l.second.CheckDefinition} {
			_, err := publish(l.second.single(t, door), root)
			assert.ErrorIs(t, err, failure.ErrNotLeader, "another node")
		}
		l.first.publishSingle(t, door)
		l.first.wantCreatable(t, "at the leader", "door", 1)
		_, err := l.first.PublishDefinition(l.first.single(t, doorOther), root)
		assert.ErrorIs(t, err, failure.ErrExists, "other content")
		must(t, l.first.Publish(l.first.sources(t, strings.Replace(plain, "version: 1", "version: 2", 1))))
		l.first.wantCreatable(t, "after a home was published", "door", 1)
		l.Nodes[1].Isolate(false)
		clocktest.Advance(10 * time.Second)
		must(t, l.second.Reload())
		l.second.wantCreatable(t, "at another node", "door", 1)
	})
}
