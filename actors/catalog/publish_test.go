package catalog

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/filter"
)

// TestARefusedPublicationChangesNothing: what can fail is done before the commit,
// what is to be known of the indexes included.
func TestARefusedPublicationChangesNothing(t *testing.T) {
	c := openCatalog(t, openStore(t))
	must(t, c.Publish(c.sources(t, plain)))
	c.publishing.Lock()
	rows := &c.publishing.indexes.Indexes // as another release could have written it
	*rows = append(*rows, storedIndex{Number: 99, Workflow: "gone", Path: "states", State: building})
	c.publishing.Unlock()
	(*c.current.Load())["gone"] = &currentVersion{version: 1} // it was not read yet
	before, appended := c.Len(), c.store.Metrics().Appended
	indexed := strings.Replace(plain, "id: plain", "id: stock\nindexes: [svcPublic.a]", 1)
	require.ErrorIs(t, c.Publish(c.sources(t, plain, indexed)), filter.ErrRoot)
	assert.Equal(t, before, c.Len())
	assert.Equal(t, appended, c.store.Metrics().Appended)
}

// TestAPinWhileAnUnreadableDefinitionIsPublishedAgain waits for the publication: the
// version can be read before it is the current one.
func TestAPinWhileAnUnreadableDefinitionIsPublishedAgain(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	must(t, c.Publish(c.sources(t, plain)))
	w := store.NewBatch(key.Meta)
	w.Set(key.Definition(nil, "plain", 1), []byte("no definition"))
	must(t, store.Commit(w))
	c = openCatalog(t, store)
	_, err := c.Newest("plain")
	require.ErrorIs(t, err, failure.ErrExecution)
	mended := c.sources(t, plain)[0]
	c.publishing.Lock()
	c.keep(mended.key(), mended.Parsed)
	pinned := make(chan Pin, 1)
	go func() {
		pin, err := c.Pin("plain")
		assert.NoError(t, err)
		pinned <- pin
	}()
	for range 1000 { // so that it looks before the version is the current one
		runtime.Gosched()
	}
	now := maps.Clone(*c.current.Load())
	now["plain"] = &currentVersion{Definition: mended.Parsed, version: 1, listed: true, pins: c.pinsLocked(mended.key())}
	c.current.Store(&now)
	c.publishing.Unlock()
	if pin := <-pinned; pin.version == nil || pin.Definition() == nil {
		t.Errorf("got the pin %+v, want one of what was published", pin)
	} else {
		pin.Release()
	}
}

const plain = "id: plain\nversion: 1\nstateMachines: {m: {initial: a, states: {a: {on: {go: b}}, b: {type: final}}}}\n"

func must(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

func openStore(t *testing.T) *persistence.Store {
	t.Helper()
	store, err := persistence.Open(t.TempDir(), persistence.Options{Log: zerolog.Nop()})
	must(t, err)
	t.Cleanup(func() {
		assert.NoError(t, store.Close())
	})
	return store
}

func openCatalog(t *testing.T, store *persistence.Store) *Catalog {
	t.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	must(t, err)
	c, err := Open(Options{Store: store, Parser: parser, Log: zerolog.Nop()})
	must(t, err)
	return c
}

func (c *Catalog) sources(t *testing.T, texts ...string) (set []Source) {
	t.Helper()
	for i, text := range texts {
		file := fmt.Sprintf("workflows/%d.yaml", i)
		parsed, err := c.parser.Parse(statemachine.Source{File: file, Text: []byte(text)})
		must(t, err)
		set = append(set, Source{File: file, Text: []byte(text), Parsed: parsed.Definition})
	}
	return set
}

var door = strings.Replace(plain, "id: plain", "id: door", 1)

func (c *Catalog) single(t *testing.T, text string) Source {
	t.Helper()
	s := c.sources(t, text)[0]
	s.File = "body.yaml"
	return s
}

func (c *Catalog) publishSingle(t *testing.T, text string) {
	t.Helper()
	_, err := c.PublishDefinition(c.single(t, text), users()["root"])
	must(t, err)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
