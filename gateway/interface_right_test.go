package gateway_test

import (
	"slices"
	"strings"
	"testing"
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
			u, before := users[c.who], len(s.instances(t, s.adm, c.workflow))
			if c.does == "create" {
				if a := u.create(t, c.workflow, c.content); c.status == 200 {
					a.record(t)
				} else {
					wantFault(t, a, c.status, words[c.status])
					s.wantInstances(t, c.workflow, before, 0)
				}
				return
			}
			r := s.adm.create(t, c.workflow, c.content).record(t)
			does := func(id string) answer {
				if c.does == "read" {
					return u.load(t, c.workflow, id)
				}
				return u.event(t, c.workflow, id, events[c.workflow], "")
			}
			a := does(r.ID)
			mayRead := u.load(t, c.workflow, r.ID).status == 200
			if !mayRead {
				wantSameAnswer(t, does(nowhere), a)
			}
			if c.status == 200 {
				a.record(t)
			} else {
				wantFault(t, a, c.status, words[c.status])
			}
			if list := u.query(t, c.workflow, ""); list.status != 403 || c.status != 403 {
				if got := slices.Contains(list.page(t).ids(), r.ID); got != mayRead {
					t.Errorf("the list has the instance: %v", got)
				}
			}
			if c.does == "send" && c.status == 403 {
				s.unchanged(t, r)
			}
		})
	}
	t.Run("whoever gives an instance away loses it with the same event", func(t *testing.T) {
		r := s.ann.create(t, "mine", annsOwn).record(t)
		s.ann.event(t, "mine", r.ID, "give", `{"owner":"bob"}`).record(t)
		wantFault(t, s.ann.load(t, "mine", r.ID), 404, "NotFound")
		s.bob.load(t, "mine", r.ID).record(t)
	})
	t.Run("choices are what the caller may create", func(t *testing.T) {
		for who, want := range map[string]string{"ann": "small vault", "bob": "", "eve": "", "adm": "small vault"} {
			a := users[who].get(t, root+"/choices")
			if got := strings.Contains(a.body, `{"id":"vault"`); !strings.Contains(a.body, `{"id":"plain"`) || got != (want != "") || strings.Contains(a.body, `{"id":"small"`) != got {
				t.Errorf("%s: got %s, want plain %s", who, a.body, want)
			}
		}
	})
}
