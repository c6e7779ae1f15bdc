package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
)

var (
	root    = &identity.Principal{ID: "root", Privileges: []string{"mod-admin", "mod-workflows"}}
	ann     = &identity.Principal{ID: "ann", Privileges: []string{"mod-workflows"}}
	mallory = &identity.Principal{ID: "mallory", Privileges: []string{"mod-workflows"}}
	clerk   = &identity.Principal{ID: "carl", Roles: []string{"clerk"}, Privileges: []string{"mod-workflows"}}
)

// numbered is the door in a version, with what stands at its top.
func numbered(version, top string) string {
	return top + strings.Replace(door, "version: 1", "version: "+version, 1)
}

// refuses demands that a user may neither publish a definition nor check it, and that the message says who may.
func (c *Catalog) refuses(t *testing.T, what string, by *identity.Principal, text, message string) {
	t.Helper()
	for _, publish := range []func(Source, *identity.Principal) (bool, error){c.CheckDefinition, c.PublishDefinition} {
		_, err := publish(c.single(t, text), by)
		assert.True(t, errors.Is(err, failure.ErrForbidden) && failure.Of(err).Reason == message, "%s: got %v, want ErrForbidden: %s", what, err, message)
	}
}

// takes demands that a user may check and publish it.
func (c *Catalog) takes(t *testing.T, what string, by *identity.Principal, text string) {
	t.Helper()
	for _, publish := range []func(Source, *identity.Principal) (bool, error){c.CheckDefinition, c.PublishDefinition} {
		_, err := publish(c.single(t, text), by)
		assert.NoError(t, err, what)
	}
}

const (
	onlyAnn   = "only the owners of workflow door (user ann) and holders of mod-admin may publish a version of it"
	onlyAdmin = "workflow door has no owners: only holders of mod-admin may publish a version of it"
)

// TestOnlyOwnersPublishTheNextVersion holds statemachine/DEFINITION.md, "Owners".
func TestOnlyOwnersPublishTheNextVersion(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	c.takes(t, "a new id", ann, numbered("5", ""))
	for _, when := range []string{"at once", "after a restart"} {
		c.refuses(t, "a higher version "+when, mallory, numbered("6", "allow: {read: {users: [mallory]}}\n"), onlyAnn)
		c.refuses(t, "a lower version "+when, mallory, numbered("1", ""), onlyAnn)
		c.refuses(t, "the same content "+when, mallory, numbered("5", ""), onlyAnn)
		c.refuses(t, "other content of the same version "+when, mallory, numbered("5", "name: Mine\n"), onlyAnn)
		c = openCatalog(t, store)
	}
	c.takes(t, "a lower version by the owner", ann, numbered("4", ""))
	c.takes(t, "the next by an administrator", root, numbered("6", ""))
	c.refuses(t, "who published once is no owner by that", clerk, numbered("7", ""), onlyAnn)
	c.takes(t, "the first publisher stays the owner", ann, numbered("7", ""))
	c.takes(t, "other owners", ann, numbered("8", "owners: {users: [mallory], roles: [clerk]}\n"))
	const those = "only the owners of workflow door (user mallory; role clerk) and holders of mod-admin may publish a version of it"
	c.takes(t, "the same again, by who is no owner any more", ann, numbered("8", "owners: {users: [mallory], roles: [clerk]}\n"))
	c.refuses(t, "the first publisher, whom the newest version does not name", ann, numbered("9", ""), those)
	c.takes(t, "a lower version does not change the owners", mallory, numbered("2", "owners: {users: [ann]}\n"))
	c.refuses(t, "the owner of a lower version", ann, numbered("9", ""), those)
	c.takes(t, "by a role", clerk, numbered("9", "owners: {privileges: [mod-form]}\n"))
	c.refuses(t, "by a privilege that they lack", clerk, numbered("10", ""), "only the owners of workflow door (privilege mod-form) and holders of mod-admin may publish a version of it")
	c.takes(t, "without owners", root, numbered("10", ""))
	c.takes(t, "it is the first publisher's again", ann, numbered("11", ""))
}

// TestAnIdThatIsGoneKeepsItsOwners: neither a definition whose rows are gone, nor one whose file is, can be taken over.
func TestAnIdThatIsGoneKeepsItsOwners(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	c.publishSingleAs(t, ann, numbered("1", ""))
	forget(t, store, "door", 1)
	c = openCatalog(t, store)
	c.wantCreatable(t, "removed", "door", 0)
	c.refuses(t, "what was ann's", mallory, numbered("1", ""), onlyAnn)
	c.takes(t, "her own", ann, numbered("1", "owners: {roles: [clerk]}\n"))
	forget(t, store, "door", 1)
	c = openCatalog(t, store)
	c.refuses(t, "what had owners", ann, numbered("1", ""), "only the owners of workflow door (role clerk) and holders of mod-admin may publish a version of it")
	c.takes(t, "by an owner", clerk, numbered("1", ""))

	must(t, c.Publish(c.sources(t, plain)))
	must(t, c.Publish(nil))
	plainTwo := strings.Replace(plain, "version: 1", "version: 2", 1)
	const noOwners = "workflow plain has no owners: only holders of mod-admin may publish a version of it"
	c.refuses(t, "what a file had", mallory, plainTwo, noOwners)
	forget(t, store, "plain", 1)
	c = openCatalog(t, store)
	c.refuses(t, "what a file had, and is gone", mallory, plainTwo, noOwners)
	must(t, c.Publish(c.sources(t, "owners: {users: [ann]}\n"+plain)))
	must(t, c.Publish(nil))
	c.takes(t, "the owner that a file named", ann, plainTwo)
}

// TestAHomeTakesAWorkflow: whoever published it before a file named it has no right to it by that any more.
func TestAHomeTakesAWorkflow(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	c.takes(t, "a new id", ann, door)
	must(t, c.MayAssign("door", ann))
	c.retires(t, "her own", ann, "door", 0, nil, 1)
	must(t, c.Publish(c.sources(t, door)))
	assert.ErrorIs(t, c.MayAssign("door", ann), failure.ErrForbidden, "assign")
	assert.False(t, c.isFree("other", "ann", ann, "door"), "she may invoke it with any data")
	must(t, c.Publish(nil))
	c = openCatalog(t, store)
	c.retires(t, "what was the home's", ann, "door", 1, failure.ErrForbidden)
	c.refuses(t, "what was the home's", ann, doorTwo, onlyAdmin)
}

// TestOwnersOfARetiredVersion: when all versions are gone, it belongs to the owners of the last one.
func TestOwnersOfARetiredVersion(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	c.takes(t, "the first", ann, numbered("1", "owners: {users: [ann]}\n"))
	c.takes(t, "other owners", ann, numbered("2", "owners: {users: [mallory]}\n"))
	c.retires(t, "the newest", mallory, "door", 2, nil, 2)
	c = openCatalog(t, store)
	c.retires(t, "the one before", ann, "door", 0, nil, 1)
	c.refuses(t, "an owner of what is gone", mallory, door, onlyAnn)
}

// forget removes a version, and what the settings say of its workflow.
func forget(t *testing.T, store *persistence.Store, workflow string, version uint64) {
	t.Helper()
	w := store.NewBatch(key.Meta)
	w.Delete(key.Definition(nil, workflow, version))
	w.Set(key.Setting(nil, publishedSetting), []byte("{}"))
	w.Set(key.Setting(nil, listedSetting), []byte("{}"))
	must(t, store.Commit(w))
}

// publishSingleAs is publishSingle by somebody.
func (c *Catalog) publishSingleAs(t *testing.T, by *identity.Principal, text string) {
	t.Helper()
	_, err := c.PublishDefinition(c.single(t, text), by)
	must(t, err)
}

// TestOwnersOfEarlierPrograms: who published what they stored is not known.
func TestOwnersOfEarlierPrograms(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	c.publishSingleAs(t, ann, door)
	row, err := json.Marshal(stored{File: "body.yaml", Text: door})
	must(t, err)
	w := store.NewBatch(key.Meta)
	w.Delete(key.Setting(nil, ownersSetting))
	w.Set(key.Definition(nil, "door", 1), row)
	must(t, store.Commit(w))
	c = openCatalog(t, store)
	c.refuses(t, "nobody is known", ann, doorTwo, onlyAdmin)
	all, err := c.List()
	must(t, err)
	assert.True(t, len(all) == 1 && all[0].Owners == nil && all[0].Publisher == "", "got %+v", all)
	c.takes(t, "an administrator", root, numbered("2", "owners: {users: [ann]}\n"))
	c.takes(t, "whom the administrator named", ann, doorThree)
}

// TestADamagedDefinitionKeepsItsOwners: what cannot be read is nobody else's.
func TestADamagedDefinitionKeepsItsOwners(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	c.publishSingleAs(t, ann, numbered("1", "owners: {roles: [clerk]}\n"))
	w := store.NewBatch(key.Meta)
	w.Set(key.Definition(nil, "door", 1), []byte("{"))
	must(t, store.Commit(w))
	c = openCatalog(t, store)
	c.refuses(t, "damaged", ann, doorTwo, "only the owners of workflow door (role clerk) and holders of mod-admin may publish a version of it")
	c.takes(t, "by an owner", clerk, doorTwo)
}

// TestOwnersAreShown: those that the definition names, or the first publisher; and who published a version.
func TestOwnersAreShown(t *testing.T) {
	c := openCatalog(t, openStore(t))
	must(t, c.Publish(c.sources(t, plain)))
	c.publishSingleAs(t, ann, door)
	c.publishSingleAs(t, root, numbered("2", "owners: {roles: [clerk]}\n"))
	all, err := c.List()
	must(t, err)
	assert.True(t, len(all) == 2 && slices.Equal(all[0].Owners.Roles, []string{"clerk"}) && all[0].Publisher == "ann" && all[1].Owners == nil && all[1].Publisher == "",
		"got %+v", all)
	one, err := c.Text("door", 1)
	must(t, err)
	two, err := c.Text("door", 2)
	must(t, err)
	if !slices.Equal(one.Owners.Users, []string{"ann"}) || one.Publisher != "ann" || !slices.Equal(two.Owners.Roles, []string{"clerk"}) || two.Publisher != "root" {
		t.Errorf("got %+v and %+v", one, two)
	}
	file, err := c.Text("plain", 0)
	assert.True(t, err == nil && file.Owners == nil && file.Publisher == "", "of a file: got %+v, %v", file, err)
}

// TestAChangeOfRightsIsLogged: with who, which version, and which blocks, and nothing else is.
func TestAChangeOfRightsIsLogged(t *testing.T) {
	var log bytes.Buffer
	c := openCatalog(t, openStore(t))
	c.log = zerolog.New(&log)
	said := func(what, want string) {
		t.Helper()
		assert.Equal(t, want, strings.TrimSpace(log.String()), what)
		log.Reset()
	}
	line := func(workflow, version, before, user, blocks string) string {
		return `{"level":"info","workflow":"` + workflow + `","version":` + version + `,"before":` + before + `,"user":"` + user + `","blocks":[` + blocks + `],"message":"a version changes the rights of its workflow"}`
	}
	c.publishSingleAs(t, ann, door)
	said("a new id", "")
	c.publishSingleAs(t, ann, numbered("2", "name: New\n"))
	said("another name", "")
	_, err := c.CheckDefinition(c.single(t, numbered("3", "allow: {read: {users: [ann]}}\n")), ann)
	must(t, err)
	said("a dry run", "")
	c.publishSingleAs(t, ann, numbered("3", "allow: {read: {users: [ann]}}\n"))
	said("allow", line("door", "3", "2", "ann", `"allow"`))
	c.publishSingleAs(t, root, numbered("4", "owners: {users: [ann]}\nallow: {read: {users: [ann, root]}}\ncreate: {svcPublic: false}\n"))
	said("all", line("door", "4", "3", "root", `"owners","allow","create"`))
	must(t, c.Publish(c.sources(t, plain)))
	said("a new file", "")
	must(t, c.Publish(c.sources(t, plain)))
	said("the same file", "")
	must(t, c.Publish(c.sources(t, "create: {svcPublic: false}\n"+plain)))
	said("a file under the same version", line("plain", "1", "1", "home", `"create"`))
	must(t, c.Publish(c.sources(t, "create: {svcPublic: false}\nallow: {create: {users: [ann]}}\n"+strings.Replace(plain, "version: 1", "version: 2", 1))))
	said("a file with the next version", line("plain", "2", "1", "home", `"allow"`))
}

// TestOwnersInACluster: every leader knows them, whoever led when the workflow was published.
func TestOwnersInACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLate(t)
		defer l.stop(t)
		l.first.publishSingleAs(t, ann, door)
		l.first.refuses(t, "at the leader", mallory, doorTwo, onlyAnn)
		l.Nodes[1].Isolate(false)
		clocktest.Advance(10 * time.Second)
		must(t, l.second.Reload())
		l.second.publishing.Lock()
		defer l.second.publishing.Unlock()
		owners, err := l.second.loadOwners()
		assert.True(t, err == nil && owners["door"].By == "ann", "at another node: got %+v, %v", owners, err)
	})
}
