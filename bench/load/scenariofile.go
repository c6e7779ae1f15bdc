package load

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	filters "troupe/statemachine/filter"
)

// ReadScenario reads the file of a scenario and the definition that it names (cmd/troupe/HOME.md, "A load of your
// own"). The error is document.Faults when the files can be read and are wrong.
func ReadScenario(file string) (*Scenario, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return ParseScenario(file, text, os.ReadFile)
}

// scenarioReader reads a scenario. What it adds to the collector becomes the error.
type scenarioReader struct {
	document.Collector
	scenario *Scenario
	// roles and privileges are those that the definition names.
	roles, privileges []string
	// events and nodes are those of the definition; nil when there is none.
	events, nodes []string
}

// ParseScenario is ReadScenario on a text. read returns the definition, and what it refers to.
func ParseScenario(file string, src []byte, read func(name string) ([]byte, error)) (*Scenario, error) {
	root, err := document.Parse(file, src)
	if err != nil {
		return nil, err
	}
	r := &scenarioReader{Collector: document.Collector{File: file}, scenario: &Scenario{Refs: map[string][]byte{}, places: map[string]*place{}}}
	r.Known(root, "definition", "workflow", "users", "create", "query", "walk", "work")
	if name := r.Text(root.Field("definition")); name != "" {
		if err := r.definition(root.Field("definition"), filepath.Join(filepath.Dir(file), name), read); err != nil {
			return nil, err
		}
	}
	s := r.scenario
	if n := root.Field("workflow"); n != nil {
		s.WorkflowID = r.Text(n)
		if _, ok := statemachine.ParseWorkflowID(s.WorkflowID); !ok {
			r.Add(n, "this is not the id of a workflow")
		}
	}
	if s.WorkflowID == "" && r.Err() == nil { // otherwise a definition that cannot be read may say it
		r.Add(root, "neither definition nor workflow says whose events these are")
	}
	r.users(root.Field("users"))
	r.creation(root.Field("create"))
	r.list(root.Field("query"))
	r.work(root.Field("work"))
	r.walk(root)
	return s, r.Err()
}

func (r *scenarioReader) definition(at *document.Node, file string, read func(name string) ([]byte, error)) error {
	text, err := read(file)
	if err != nil {
		r.Add(at, "%v", err)
		return nil
	}
	s := r.scenario
	parser, err := statemachine.NewParser(statemachine.ParserOptions{
		HasRole:      func(name string) bool { r.roles = append(r.roles, name); return true },
		HasPrivilege: func(name string) bool { r.privileges = append(r.privileges, name); return true },
	})
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(statemachine.Source{File: file, Text: text, Read: func(name string) ([]byte, error) {
		ref, err := read(filepath.Join(filepath.Dir(file), filepath.FromSlash(name)))
		s.Refs[name] = ref
		return ref, err
	}})
	if err != nil {
		return err
	}
	s.roles = r.roles
	s.Definition, s.DefinitionFile, s.WorkflowID = string(text), file, string(parsed.ID)
	for _, name := range parsed.EventNames() {
		r.events = append(r.events, string(name))
	}
	if tree, err := document.Parse(file, text); err == nil {
		r.nodes = nodesBelow(tree, nil)
	}
	return nil
}

func nodesBelow(n *document.Node, names []string) []string {
	if n == nil {
		return names
	}
	for _, f := range n.Fields {
		if f.Key.Text == "states" {
			for _, state := range f.Value.Fields {
				names = append(names, state.Key.Text)
			}
		}
		names = nodesBelow(f.Value, names)
	}
	return names
}

// users reads who works at the instances. Without any there is one who has every role
// and privilege that the definition names.
func (r *scenarioReader) users(n *document.Node) {
	s := r.scenario
	if n == nil {
		s.Users = []User{{Name: UserID, Roles: slices.Compact(slices.Sorted(slices.Values(r.roles)))}}
	} else if n.Kind != document.Mapping || len(n.Fields) == 0 {
		r.Add(n, "expected the users, each with a list of roles")
		s.Users = []User{{Name: UserID}}
	} else {
		for _, f := range n.Fields {
			s.Users = append(s.Users, User{Name: f.Key.Text, Roles: r.Texts(f.Value)})
			for _, role := range f.Value.Items {
				// NB: an expression may name a role too.
				if r.events != nil && !strings.Contains(s.Definition, role.Text) {
					r.unknown(role, "role", r.roles)
				}
			}
		}
	}
	for i := range s.Users {
		s.Users[i].Privileges = slices.Compact(slices.Sorted(slices.Values(r.privileges)))
	}
}

// user is the place of the user that n names; nil is the first.
func (r *scenarioReader) user(n *document.Node) int {
	if n == nil {
		return 0
	}
	users := r.scenario.Users
	name := r.Text(n)
	i := slices.IndexFunc(users, func(u User) bool { return u.Name == name })
	if i < 0 && name != "" {
		names := make([]string, len(users))
		for i := range users {
			names[i] = users[i].Name
		}
		r.Add(n, "there is no user %s", data.Quote(name)).Suggestion = "users: " + strings.Join(names, ", ")
	}
	return max(0, i)
}

func (r *scenarioReader) creation(n *document.Node) {
	r.Known(n, "as", "public", "private")
	s := r.scenario
	s.creator = r.user(n.Field("as"))
	public, private := r.text(n.Field("public")), r.text(n.Field("private"))
	if public == nil && private == nil {
		return
	}
	comma := ""
	s.create = text{{literal: "{"}}
	for _, part := range []struct {
		name string
		text text
	}{{"svcPublic", public}, {"svcPrivate", private}} {
		if part.text != nil {
			s.create = append(append(s.create, piece{literal: comma + `"` + part.name + `":`}), part.text...)
			comma = ","
		}
	}
	s.create = append(s.create, piece{literal: "}"})
}

func (r *scenarioReader) text(n *document.Node) text {
	if n == nil {
		return nil
	}
	value, err := n.Data()
	if err != nil {
		r.Add(n, "%v", err)
		return nil
	}
	t, err := parseText(string(value))
	if err != nil {
		r.Add(n, "%v", err)
		return nil
	}
	if filled := t.append(nil, newContent(0)); !json.Valid(filled) {
		r.Add(n, "with its placeholders filled in this is not JSON: %s", filled)
	}
	return t
}

func (r *scenarioReader) list(n *document.Node) {
	r.Known(n, "filter", "limit")
	filter, limit := "", queryLimit
	if f := n.Field("filter"); f != nil {
		value, err := f.Data()
		if err != nil {
			r.Add(f, "%v", err)
		}
		filter = string(value)
		if _, fault := filters.Parse(value, filters.Options{Private: true}); err == nil && fault != nil {
			r.Add(f, "%v", fault)
		}
	}
	if number, ok := r.Int(n.Field("limit")); ok {
		if limit = number; limit < 1 || limit > 1000 {
			r.Add(n.Field("limit"), "a limit is from 1 to 1000")
		}
	}
	r.scenario.query = query(filter, limit)
}

func (r *scenarioReader) walk(root *document.Node) {
	n := root.Field("walk")
	if n == nil && r.scenario.Works() {
		return // its instances go on by jobs alone
	}
	if n == nil || n.Kind != document.Mapping || len(n.Fields) == 0 {
		r.Add(cmp.Or(n, root), "walk is missing: the nodes, each with a list of steps such as {event: submit}")
		return
	}
	for _, f := range n.Fields {
		r.node(f.Key)
		at := r.scenario.place(f.Key.Text)
		if f.Value.Kind != document.Sequence || len(f.Value.Items) == 0 {
			r.Add(f.Value, "expected a list of steps, such as [{event: submit}]")
		}
		for _, item := range f.Value.Items {
			at.add(r.step(item))
		}
		if len(f.Value.Items) > 0 && at.sum <= 0 {
			r.Add(f.Key, "no step of this node has a weight above 0")
		}
	}
}

// work reads what the program does that takes the jobs.
func (r *scenarioReader) work(n *document.Node) {
	if n == nil {
		return
	}
	r.Known(n, "as", "outputs")
	outputs := map[string]text{}
	all := n.Field("outputs")
	if all == nil || all.Kind != document.Mapping || len(all.Fields) == 0 {
		r.Add(cmp.Or(all, n), "outputs is missing: the types of jobs, each with its output")
		return
	}
	for _, f := range all.Fields {
		outputs[f.Key.Text] = r.text(f.Value)
	}
	r.scenario.setWork(r.user(n.Field("as")), outputs)
}

func (r *scenarioReader) step(n *document.Node) step {
	r.Known(n, "event", "data", "as", "weight", "to")
	s := step{event: r.Text(n.Field("event")), data: r.text(n.Field("data")), user: r.user(n.Field("as")), weight: 1}
	if s.event == "" {
		r.Add(n, "event is missing")
	} else if r.events != nil && !slices.Contains(r.events, s.event) {
		r.unknown(n.Field("event"), "event", r.events)
	}
	if !json.Valid([]byte(`"` + s.event + `"`)) {
		r.Add(n, "this is not the name of an event")
	}
	if w := n.Field("weight"); w != nil {
		weight, err := strconv.ParseFloat(w.Text, 64)
		if err != nil || w.Kind != document.Number || !(weight >= 0 && weight <= partMax) {
			r.Add(w, "expected a number from 0 to %d", partMax)
		}
		s.weight = weight
	}
	if to := n.Field("to"); to != nil {
		r.node(to)
		s.to = r.scenario.place(r.Text(to))
	}
	return s
}

func (r *scenarioReader) node(n *document.Node) {
	if r.nodes != nil && !slices.Contains(r.nodes, n.Text) {
		r.unknown(n, "node", r.nodes)
	}
}

func (r *scenarioReader) unknown(n *document.Node, what string, known []string) {
	fault := r.Add(n, "the workflow has no %s %s", what, data.Quote(n.Text))
	if near := document.Closest(n.Text, known); near != "" {
		fault.Suggestion = fmt.Sprintf("did you mean %q?", near)
	} else {
		fault.Suggestion = "it has: " + strings.Join(slices.Compact(slices.Sorted(slices.Values(known))), ", ")
	}
}

// text is JSON with places that are filled in again for each request.
type text []piece

type piece struct {
	literal string
	fill    func(dst []byte, c *content) []byte // nil: the literal
}

// content is what places are filled from. It belongs to one worker.
type content struct {
	random *rand.Rand
	count  *atomic.Int64 // {{n}} of the whole run
}

func newContent(seed uint64) *content {
	return &content{rand.New(rand.NewPCG(seed, 0)), new(atomic.Int64)}
}

func (t text) append(dst []byte, c *content) []byte {
	for i := range t {
		if t[i].fill == nil {
			dst = append(dst, t[i].literal...)
			continue
		}
		dst = t[i].fill(dst, c)
	}
	return dst
}

// placeholder is {{words}}; with the quotes around it, it is the whole of a string.
var placeholder = regexp.MustCompile(`"\{\{([^{}"]*)\}\}"|\{\{([^{}"]*)\}\}`)

// parseText finds the placeholders in a JSON text:
//
//	{{n}}               1, 2, 3 and so on, over the whole run
//	{{random 1 100}}    a whole number between the two, both included
//	{{choice a b c}}    one of the words
//	{{uuid}}            a random UUID
//
// A string that is n or random and nothing else becomes a number.
func parseText(json string) (text, error) {
	var t text
	for {
		at := placeholder.FindStringSubmatchIndex(json)
		literal := json
		if at != nil {
			literal = json[:at[0]]
		}
		if strings.Contains(literal, "{{") { // outside a text no JSON has that
			return nil, errNoEnd
		}
		if at == nil {
			return append(t, piece{literal: json}), nil
		}
		whole := at[2] >= 0
		words := json[max(0, at[2]):max(0, at[3])]
		if !whole {
			words = json[at[4]:at[5]]
		}
		fill, number, err := parsePlaceholder(strings.Fields(words))
		if err != nil {
			return nil, fmt.Errorf("{{%s}}: %w", words, err)
		}
		before, after := json[:at[0]], json[at[1]:]
		if whole && !number {
			before, after = before+`"`, `"`+after
		}
		t = append(t, piece{literal: before}, piece{fill: fill})
		json = after
	}
}

var errNoEnd = errors.New("{{ has no }}: a placeholder begins with the one and ends with the other")

var errPlaceholder = errors.New("a placeholder is {{n}}, {{random 1 100}}, {{choice a b}} or {{uuid}}")

func parsePlaceholder(words []string) (fill func([]byte, *content) []byte, number bool, err error) {
	switch {
	case slices.Equal(words, []string{"n"}):
		return func(dst []byte, c *content) []byte { return strconv.AppendInt(dst, c.count.Add(1), 10) }, true, nil
	case slices.Equal(words, []string{"uuid"}):
		return appendUUID, false, nil
	case len(words) > 1 && words[0] == "choice":
		return func(dst []byte, c *content) []byte { return append(dst, words[1+c.random.IntN(len(words)-1)]...) }, false, nil
	case len(words) == 3 && words[0] == "random":
		least, err := strconv.ParseInt(words[1], 10, 32)
		most, err2 := strconv.ParseInt(words[2], 10, 32)
		if errors.Join(err, err2) != nil || most < least {
			return nil, false, errors.New("random needs two whole numbers, the smaller one first, such as {{random 1 100}}")
		}
		return func(dst []byte, c *content) []byte {
			return strconv.AppendInt(dst, least+c.random.Int64N(most-least+1), 10)
		}, true, nil
	}
	return nil, false, errPlaceholder
}

// appendUUID appends a UUID of version 4 (RFC 9562).
func appendUUID(dst []byte, c *content) []byte {
	high := c.random.Uint64()&^0xf000 | 0x4000
	low := c.random.Uint64()&^(3<<62) | 2<<62
	digits := fmt.Appendf(nil, "%016x%016x", high, low)
	return append(dst, bytes.Join([][]byte{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, []byte{'-'})...)
}
