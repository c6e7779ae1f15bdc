package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/wiretest"
)

// TestInterfaceRights holds gateway/INTERFACE.md, "Rights to a workflow", and
// gateway/INTERFACE.md, "Unknown instances". What somebody may not do is answered for an
// instance as for one that is not there, and changes nothing.
func TestInterfaceRights(t *testing.T) {
	s := newScene(t)
	users := map[string]user{"ann": s.ann, "bob": s.bob, "eve": s.eve, "adm": s.adm}
	events := map[string]string{"vault": "open", "plain": "go", "mine": "give"}
	words := map[int]string{403: "AccessDenied", 404: "NotFound"}
	const nine, ten, annsOwn, bobsOwn = `{"svcPublic":{"size":9}}`, `{"svcPublic":{"size":10}}`, `{"svcPublic":{"owner":"ann"}}`, `{"svcPublic":{"owner":"bob"}}`
	for _, c := range []struct {
		says, who, does, workflow, content string
		status                             int
	}{
		{"by role", "ann", "create", "vault", "", 200},
		{"another role", "bob", "create", "vault", "", 403},
		{"no role", "eve", "create", "vault", "", 403},
		{"by user", "ann", "create", "small", nine, 200},
		{"by privilege", "adm", "create", "small", nine, 200},
		{"neither", "bob", "create", "small", nine, 403},
		{"when does not hold", "ann", "create", "small", ten, 403},
		{"when cannot be evaluated", "ann", "create", "small", "", 403},
		{"without rules", "eve", "create", "plain", "", 200},
		{"by role", "bob", "read", "vault", "", 200},
		{"no role", "eve", "read", "vault", "", 403},
		{"without rules", "bob", "read", "plain", "", 200},
		{"when holds", "bob", "read", "mine", bobsOwn, 200},
		{"when does not hold", "bob", "read", "mine", annsOwn, 404},
		{"by role", "ann", "send", "vault", "", 200},
		{"another role", "bob", "send", "vault", "", 403},
		{"nor may read", "eve", "send", "vault", "", 403},
		{"deny wins", "adm", "send", "vault", "", 403},
		{"without rules", "eve", "send", "plain", "", 200},
		{"without send whoever may read", "bob", "send", "mine", bobsOwn, 200},
		{"nobody else", "ann", "send", "mine", bobsOwn, 404},
	} {
		t.Run(strings.Join([]string{c.who, c.does, c.workflow, c.says}, ", "), func(t *testing.T) {
			u, before := users[c.who], len(s.instances(t, c.workflow))
			if c.does == "create" {
				if a := u.Create(t, c.workflow, c.content); c.status == 200 {
					a.Record(t)
				} else {
					a.WantFault(t, c.status, words[c.status])
					s.wantInstances(t, c.workflow, before, 0)
				}
				return
			}
			r := s.adm.Create(t, c.workflow, c.content).Record(t)
			does := func(id string) answer {
				if c.does == "read" {
					return u.Load(t, c.workflow, id)
				}
				return u.Event(t, c.workflow, id, events[c.workflow], "")
			}
			a := does(r.ID)
			mayRead := u.Load(t, c.workflow, r.ID).Status == 200
			if !mayRead {
				wantSameAnswer(t, does(nowhere), a)
			}
			if c.status == 200 {
				a.Record(t)
			} else {
				a.WantFault(t, c.status, words[c.status])
			}
			if list := u.query(t, c.workflow, ""); list.Status != 403 || c.status != 403 {
				assert.Equal(t, mayRead, slices.Contains(pageOf(t, list).ids(), r.ID), "the list has the instance")
			}
			if c.does == "send" && c.status == 403 {
				s.unchanged(t, r)
			}
		})
	}
	t.Run("whoever gives an instance away loses it with the same event", func(t *testing.T) {
		r := s.ann.Create(t, "mine", annsOwn).Record(t)
		s.ann.Event(t, "mine", r.ID, "give", `{"owner":"bob"}`).Record(t)
		s.ann.Load(t, "mine", r.ID).WantFault(t, 404, "NotFound")
		s.bob.Load(t, "mine", r.ID).Record(t)
	})
	t.Run("choices are what the caller may create", func(t *testing.T) {
		for who, want := range map[string]string{"ann": "small vault", "bob": "", "eve": "", "adm": "small vault"} {
			a := users[who].Get(t, wiretest.Root+"/choices")
			got := strings.Contains(a.Body, `{"id":"vault"`)
			assert.True(t, strings.Contains(a.Body, `{"id":"plain"`) && got == (want != "") && strings.Contains(a.Body, `{"id":"small"`) == got,
				"%s: got %s, want plain %s", who, a.Body, want)
		}
	})
}

// TestInterfaceRefusalNamesTheRight: whoever may know of a workflow learns which right is missing.
func TestInterfaceRefusalNamesTheRight(t *testing.T) {
	s := newScene(t)
	for path, want := range map[string]string{
		"/instances/vault":              "you may not read instances of vault (allow.read)",
		"/watch/vault":                  "you may not read instances of vault (allow.read)",
		"/changes?workflowId=vault":     "you may not read instances of vault (allow.read)",
		"/instance/vault/" + nowhere:    "you may not read instances of vault (allow.read)",
		"/instances/plain?explain=true": "it needs mod-workflows",
		"/tasks?scope=every":            "it needs mod-workflows",
		"/definitions":                  "it needs mod-workflows",
	} {
		a := s.eve.Get(t, wiretest.Root+path)
		assert.True(t, a.Status == 403 && strings.Contains(a.Body, want), "%s: got %d %s, want 403 with %q", path, a.Status, a.Body, want)
	}
}
