package catalog

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/identity"
)

// order is a workflow of ann's whose creators set nothing.
const order = "id: order\nversion: 1\ncreate: {svcPublic: false}\nstateMachines: {m: {initial: a, states: {a: {on: {go: b}}, b: {type: final}}}}\n"

// invoking is a workflow that has an order with some data.
func invoking(id, data string) string {
	return "id: " + id + "\nstateMachines: {m: {initial: a, states: {a: {invoke: {workflow: order" + data + "}, on: {go: b}}, b: {type: final}}}}\n"
}

const forged = ", data: {svcPublic: {status: approved, by: '${user.id}'}}"

// TestWhoMayPublishAnInvocation holds statemachine/DEFINITION.md, "Who may invoke".
func TestWhoMayPublishAnInvocation(t *testing.T) {
	for _, c := range []struct {
		name, order, data string
		by                *identity.Principal
		want              string // what the refusal ends with; "": none
	}{
		{"forged data", order, forged, mallory, "on create svcPublic: the definition lets nobody set it"},
		{"forged data that is constant", order, ", data: {svcPublic: {status: approved}}", mallory, "on create svcPublic: the definition lets nobody set it"},
		{"private data, which is open", order, ", data: {svcPrivate: {a: 1}}", mallory, ""},
		{"constant data that fits no schema", strings.Replace(order, "svcPublic: false", "svcPublic: {type: object, required: [n]}", 1), ", data: {svcPublic: {m: 1}}", mallory, "missing property 'n'"},
		{"no data where some is required", strings.Replace(order, "svcPublic: false", "svcPublic: {type: object, required: [n]}", 1), "", mallory, "missing property 'n'"},
		{"data that only the run knows", order, ", data: {svcPublic: '${svcPublic}'}", mallory, ""},
		{"no data", order, "", mallory, ""},
		{"no right to create", "allow: {create: {roles: [clerk]}}\n" + order, "", mallory, "the user may not create such an instance"},
		{"a right to create", "allow: {create: {roles: [clerk]}}\n" + order, "", clerk, ""},
		{"a right that depends on the data", "allow: {create: {when: 'svcPublic.n == 1'}}\n" + order, "", mallory, ""},
		{"the owner", "allow: {create: {roles: [clerk]}}\n" + order, forged, ann, ""},
		{"an administrator", order, forged, root, ""},
		{"an owner by role", "owners: {roles: [clerk]}\n" + order, forged, clerk, ""},
		{"who published it, and is no owner", "owners: {roles: [clerk]}\n" + order, forged, ann, "on create svcPublic: the definition lets nobody set it"},
		{"the workflow is named", "allow: {invoke: {workflows: [other, evil]}}\n" + order, forged, mallory, ""},
		{"another one is named", "allow: {invoke: {workflows: [other]}}\n" + order, forged, mallory, "on create svcPublic: the definition lets nobody set it"},
	} {
		c0 := openCatalog(t, openStore(t))
		c0.publishSingleAs(t, ann, c.order)
		for _, publish := range []func(Source, *identity.Principal) (bool, error){c0.CheckDefinition, c0.PublishDefinition} {
			_, err := publish(c0.single(t, invoking("evil", c.data)), c.by)
			const begins = "evil may not invoke order so: you do not own order, its allow.invoke does not name evil, and its rules refuse you: "
			if c.want == "" && err != nil {
				t.Errorf("%s: %v", c.name, err)
			} else if reason := failure.Of(err).Reason; c.want != "" && (!errors.Is(err, failure.ErrForbidden) || !strings.HasPrefix(reason, begins) || !strings.Contains(reason, c.want)) {
				t.Errorf("%s: got %v, want ErrForbidden with %s", c.name, err, c.want)
			}
		}
	}
}

// TestNamingAnOwnerIsNoConsent: what counts is who published the calling version.
func TestNamingAnOwnerIsNoConsent(t *testing.T) {
	c := openCatalog(t, openStore(t))
	c.publishSingleAs(t, ann, order)
	c.refuses(t, "naming the owner", mallory, "owners: {users: [mallory, ann]}\n"+invoking("evil", forged),
		"evil may not invoke order so: you do not own order, its allow.invoke does not name evil, and its rules refuse you: on create svcPublic: the definition lets nobody set it")
}

// TestForWhomAVersionInvokes: by who published that version, where it comes from, and what holds now.
func TestForWhomAVersionInvokes(t *testing.T) {
	store := openStore(t)
	c := openCatalog(t, store)
	must(t, c.Publish(c.sources(t, plain)))
	c.publishSingleAs(t, mallory, invoking("evil", forged)) // NB: there is no order yet
	c.publishSingleAs(t, ann, invoking("hers", forged))
	c.publishSingleAs(t, root, strings.Replace(invoking("hers", forged), "id: hers", "id: hers\nversion: 2", 1))
	c.publishSingleAs(t, ann, order)
	users := map[identity.UserID]*identity.Principal{"ann": ann, "mallory": mallory, "root": root}
	find := func(id identity.UserID) *identity.Principal { return users[id] }
	wants := func(when, workflow string, version uint64, called string, free bool, by string) {
		t.Helper()
		got, user, err := c.MayInvoke(workflow, version, called, find)
		must(t, err)
		assert.True(t, got == free && (free || user.ID == by), "%s: got %t, %+v, want %t, %q", when, got, user, free, by)
	}
	wants("another's", "evil", 1, "order", false, "mallory")
	wants("itself", "evil", 1, "evil", true, "")
	wants("the owner's", "hers", 1, "order", true, "")
	wants("an administrator's version", "hers", 2, "order", true, "")
	wants("a home's", "plain", 1, "order", true, "")
	wants("of a home", "evil", 1, "plain", false, "mallory")
	wants("what is not there", "evil", 1, "nothing", false, "mallory")
	delete(users, "mallory")
	wants("a user who has gone", "evil", 1, "order", false, "")
	delete(users, "ann")
	wants("an owner who has gone", "hers", 1, "order", true, "")
	users["root"] = &identity.Principal{ID: "root"}
	wants("who is no administrator any more", "hers", 2, "order", false, "root")
	c.publishSingleAs(t, ann, strings.Replace("allow: {invoke: {workflows: [evil]}}\n"+order, "version: 1", "version: 2", 1))
	wants("the called one names it now", "evil", 1, "order", true, "")
	c.publishSingleAs(t, ann, strings.Replace(order, "version: 1", "version: 3", 1))
	wants("it names it no more", "evil", 1, "order", false, "")
}
