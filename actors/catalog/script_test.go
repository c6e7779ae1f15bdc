package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// script is a catalog that testdata/script speaks to.
type script struct {
	t     *testing.T
	store *persistence.Store
	log   bytes.Buffer
	users map[identity.UserID]*identity.Principal
	pin   Pin
	*Catalog
}

// TestScript plays testdata/script: who publishes, replaces, retires and invokes which versions of workflows, and what is said of
// it. What stands below a command is put at the top of a small definition; "invoke:" goes into its state. Whatever is published is checked before, which must
// say the same.
func TestScript(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := &script{t: t, users: users()}
		s.run("anew", "")
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			s.t = t
			line := cmd.Cmd
			for _, arg := range cmd.CmdArgs {
				line += " " + arg.Key
			}
			return cmp.Or(strings.TrimSpace(s.run(line, cmd.Input)), "nothing") + "\n"
		})
	})
}

func users() map[identity.UserID]*identity.Principal {
	admin, may := []string{"mod-admin", "mod-workflows"}, []string{"mod-workflows"}
	return map[identity.UserID]*identity.Principal{
		"root": {ID: "root", Privileges: admin}, "ann": {ID: "ann", Privileges: may}, "mallory": {ID: "mallory", Privileges: may},
		"carl": {ID: "carl", Roles: []string{"clerk"}, Privileges: may},
	}
}

func (s *script) open() {
	s.Catalog = openCatalog(s.t, s.store)
	s.Catalog.log = zerolog.New(&s.log)
}

func doorText(id, version, top string) string {
	invoke := ""
	if before, after, ok := strings.Cut("\n"+top, "\ninvoke: "); ok {
		top, invoke = strings.TrimPrefix(before, "\n"), "invoke: "+after+", "
	}
	if top = strings.TrimSpace(top); top != "" {
		top += "\n"
	}
	return top + "id: " + id + "\nversion: " + version + "\nstateMachines: {m: {initial: a, states: {a: {" + invoke + "on: {go: b}}, b: {type: final}}}}\n"
}

func (s *script) run(line, input string) string {
	words := append(strings.Fields(line), "", "", "") // NB: what is left out is empty
	command, words := words[0], words[1:]
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(cmp.Or(text, "0"), 10, 64)
		must(s.t, err)
		return n
	}
	switch command {
	case "anew":
		s.store = openStore(s.t)
		s.open()
	case "restart":
		s.open()
	case "bounds": // WORKFLOWS VERSIONS
		before := fmt.Sprintf("before: %+v", s.bounds)
		s.bounds = bounds{workflows: int(number(words[0])), versions: int(number(words[1]))}
		return before
	case "check", "publish": // USER ID VERSION
		source, by := s.single(s.t, doorText(words[1], words[2], input)), s.users[identity.UserID(words[0])]
		answer := func(current bool, err error) string {
			return said(map[bool]string{true: "current", false: "not current"}[current], err)
		}
		checked := answer(s.CheckDefinition(source, by))
		if command == "publish" {
			assert.Equal(s.t, checked, answer(s.PublishDefinition(source, by)), "checked and published")
		}
		return checked
	case "home": // files that begin with a line "-- ID VERSION"
		var texts []string
		for part := range strings.SplitSeq("\n"+input, "\n-- ") {
			if head, top, _ := strings.Cut(part, "\n"); head != "" {
				id, version, _ := strings.Cut(head, " ")
				texts = append(texts, doorText(id, version, top))
			}
		}
		set := s.sources(s.t, texts...)
		checkErr := s.Check(set)
		err := s.Publish(set)
		assert.Equal(s.t, fmt.Sprint(checkErr), fmt.Sprint(err), "checked and published")
		return said("published", err)
	case "retire": // USER ID VERSION
		gone, err := s.Retire(s.t.Context(), words[1], number(words[2]), s.users[identity.UserID(words[0])])
		return said(fmt.Sprint("retired ", gone), err)
	case "list":
		return s.listed()
	case "text": // ID VERSION
		got, err := s.Text(words[0], number(words[1]))
		return said(fmt.Sprintf("version %d, current: %t, file %s, owners %s, published by %q\n%s", got.Version, got.Current, got.File, shownOwners(got.Owners), got.Publisher, got.Text), err)
	case "find": // ID VERSION
		d, err := s.Find(words[0], number(words[1]))
		return said("found", err) + fmt.Sprint(", ", d != nil)
	case "instances": // ID VERSION HOW-MANY-MORE
		w := s.store.NewBatchIn(0, s.store.Epoch(0))
		more, err := strconv.Atoi(words[2])
		must(s.t, err)
		w.Add(key.Count(nil, 0, words[0], number(words[1])), int64(more))
		done := make(confirmation, 1)
		s.store.Append(w, done)
		must(s.t, <-done)
	case "pin": // ID VERSION: an instance is being created
		var err error
		s.pin, err = s.PinVersion(words[0], number(words[1]))
		must(s.t, err)
	case "release":
		s.pin.Release()
	case "stored": // ID VERSION "gone", "damaged", "unowned" or "unlisted": as an earlier program stored it
		w := s.store.NewBatch(key.Meta)
		switch k := key.Definition(nil, words[0], number(words[1])); words[2] {
		case "gone":
			w.Delete(k)
			w.Set(key.Setting(nil, publishedSetting), []byte("{}"))
			w.Set(key.Setting(nil, listedSetting), []byte("{}"))
		case "damaged":
			w.Set(k, []byte("{"))
		case "unlisted":
			w.Delete(key.Setting(nil, olderSetting))
		case "unowned":
			row, err := json.Marshal(stored{File: "body.yaml", Text: doorText(words[0], words[1], "")})
			must(s.t, err)
			w.Delete(key.Setting(nil, ownersSetting))
			w.Set(k, row)
		}
		must(s.t, s.store.Commit(w))
		s.open()
	case "user": // USER "gone", or "plain": without a privilege
		id := identity.UserID(words[0])
		if delete(s.users, id); words[1] == "plain" {
			s.users[id] = &identity.Principal{ID: id}
		}
	case "may-assign": // USER ID
		return said("yes", s.MayAssign(words[1], s.users[identity.UserID(words[0])]))
	case "may-invoke": // ID VERSION CALLED
		free, by, err := s.MayInvoke(words[0], number(words[1]), words[2], func(id identity.UserID) *identity.Principal { return s.users[id] })
		must(s.t, err)
		if free {
			return "with any data"
		}
		return fmt.Sprintf("as %q", by.ID)
	case "log":
		defer s.log.Reset()
		return s.log.String()
	default:
		s.t.Fatalf("unknown command %q", command)
	}
	return "done"
}

func said(what string, err error) string {
	if e := failure.Of(err); err != nil && e != nil && e.Kind != 0 && e.Kind != failure.ErrInternal {
		return fmt.Sprintf("%v: %s", e.Kind, e.Reason)
	} else if err != nil {
		return err.Error()
	}
	return what
}

func shownOwners(o *statemachine.Owners) string {
	if o == nil {
		return "nobody"
	}
	return fmt.Sprintf("users %v, roles %v, privileges %v", o.Users, o.Roles, o.Privileges)
}

// listed has a line for each workflow, with the version that new instances get.
func (s *script) listed() (out string) {
	all, err := s.List()
	must(s.t, err)
	for _, w := range all {
		d, err := s.Creatable(w.ID)
		assert.Equal(s.t, w.Creatable, err == nil, w.ID)
		created := "none is created: " + said("", err)
		if err == nil {
			created = fmt.Sprint("new ones get ", d.Version)
		}
		out += fmt.Sprintf("%s %q: current %d of %v, %s, owners %s, first published by %q\n", w.ID, w.Name, w.Current, w.Versions, created, shownOwners(w.Owners), w.Publisher)
	}
	return out
}
