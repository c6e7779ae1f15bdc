package script

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"troupe/actors/identity"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Parse reads a file of tests. The error is document.Faults: all that is wrong with the file, with lines. Names of users, workflows,
// states, events and webhooks that the home does not have are wrong, too.
func Parse(file string, text []byte, known *Known) (*File, error) {
	root, err := document.Parse(file, text)
	if err != nil {
		return nil, err
	}
	p := &parser{Collector: &document.Collector{File: file}, known: known}
	if root.Kind == document.Null {
		p.Advise(root, "workflow: ID", "the file is empty")
		return nil, p.Err()
	}
	f := p.file(root)
	if err := p.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

type parser struct {
	*document.Collector
	known *Known
	of    *statemachine.Definition // that of the steps; nil: its faults are told elsewhere
	as    string                   // who does a step that does not say so; "": it must
}

func (p *parser) file(root *document.Node) *File {
	p.Known(root, "$schema", "workflow", "now", "tests")
	f := &File{Name: p.File, Workflow: p.workflow(root.Field("workflow"))}
	if root.Kind == document.Mapping && root.Field("workflow") == nil {
		p.Advise(root, "workflow: ID", "the workflow is missing")
	}
	p.of = p.known.current(f.Workflow)
	now := p.time(root.Field("now"), DefaultNow)
	tests := root.Field("tests")
	if root.Kind == document.Mapping && (tests == nil || tests.Kind != document.Mapping || len(tests.Fields) == 0) {
		p.Advise(cmp.Or(tests, root), "tests: {NAME: {steps: […]}}", "there are no tests")
		return f
	}
	if tests == nil {
		return f
	}
	for _, of := range tests.Fields {
		p.Known(of.Value, "now", "steps")
		t := &Test{File: p.File, Workflow: f.Workflow, Name: of.Key.Text, Line: of.Key.Line}
		t.Now = p.time(of.Value.Field("now"), now)
		if of.Value.Kind == document.Mapping && of.Value.Field("steps") == nil {
			p.Advise(of.Key, "steps: […]", "the test has no steps")
		}
		t.Steps = p.steps(of.Value.Field("steps"))
		f.Tests = append(f.Tests, t)
	}
	return f
}

func (p *parser) workflow(n *document.Node) string {
	id := p.Text(n)
	if id != "" && p.known.current(id) == nil {
		p.Suggest(n, id, p.known.Workflows(), "there is no workflow %s", data.Quote(id))
	}
	return id
}

func (p *parser) time(n *document.Node, otherwise time.Time) time.Time {
	text := p.Text(n)
	if text == "" {
		return otherwise
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		p.Advise(n, "such as 2026-01-05T09:00:00Z", "%s is not a time", data.Quote(text))
	}
	return at.UTC()
}

func (p *parser) steps(n *document.Node) (steps []Step) {
	if n == nil {
		return nil
	}
	if n.Kind == document.Sequence && len(n.Items) == 0 {
		p.Add(n, "there are no steps")
	}
	steps = p.stepList(n)
	created := false
	for i, s := range steps {
		item := n.Items[i]
		if !created && item.Kind == document.Mapping && s.Action != Create && s.Action != Advance {
			p.Advise(item, "{as: USER, create: {}}", "no step has created an instance yet")
			created = true // one fault is enough
		}
		created = created || s.Action == Create
	}
	return steps
}

// stepList reads a list of steps, whatever comes before them.
func (p *parser) stepList(n *document.Node) (steps []Step) {
	if n.Kind != document.Sequence {
		p.Add(n, "expected a list of steps, found %s", n.Kind)
		return nil
	}
	for _, item := range n.Items {
		steps = append(steps, p.step(item))
	}
	return steps
}

// arguments are the keys that a step may have beside that of its action.
var arguments = [...][]string{
	Create: {"as"}, Send: {"as", "data", "in"}, Advance: {}, Answer: {"status", "body", "in"},
	Complete: {"output", "in"}, Fail: {"message", "final", "in"}, Child: {"done", "failed", "in"}, NoAction: {"in"},
}

func (p *parser) step(n *document.Node) Step {
	s := Step{Line: n.Line}
	if n.Kind != document.Mapping {
		p.Add(n, "expected a step, found %s", n.Kind)
		return s
	}
	var key *document.Node
	for _, f := range n.Fields {
		is := Action(max(0, slices.Index(actions[:], f.Key.Text))) //nolint:gosec // there are eight
		switch {
		case is == NoAction:
		case s.Action != NoAction:
			p.Advise(f.Key, "make it two steps", "a step cannot both %s and %s", s.Action, is)
		default:
			s.Action, key = is, f.Value
		}
	}
	allowed := append(slices.Clone(actions[1:]), "expect", "refused")
	if before := p.Count(); s.Action == NoAction {
		for _, name := range slices.Concat(arguments[:]...) {
			if !slices.Contains(allowed, name) {
				allowed = append(allowed, name)
			}
		}
		p.Known(n, allowed...)
		if n.Field("expect") == nil && p.Count() == before {
			p.Advise(n, "a step has expect, or one of "+strings.Join(actions[1:], ", "), "the step does nothing and expects nothing")
		}
	} else {
		p.Known(n, append(allowed, arguments[s.Action]...)...)
	}
	s.In = p.workflow(n.Field("in"))
	s.As = p.user(n.Field("as"))
	if (s.Action == Create || s.Action == Send) && n.Field("as") == nil {
		if s.As = p.as; s.As == "" {
			p.Advise(n, "as: USER", "the step does not say who does it")
		}
	}
	p.action(&s, n, key)
	if refused := n.Field("refused"); refused != nil {
		s.Refused = true
		if !isTrue(refused) {
			s.RefusedStatus = p.status(refused, http.StatusBadRequest)
		}
		if s.Action == NoAction {
			p.Add(refused, "only a step that does something can be refused")
		}
	}
	if s.Expect = n.Field("expect"); s.Expect != nil {
		p.expect(s.Expect, p.definition(&s))
	}
	return s
}

// definition is that of the instance that the step is about.
func (p *parser) definition(s *Step) *statemachine.Definition {
	if s.In != "" {
		return p.known.current(s.In)
	}
	return p.of
}

func (p *parser) user(n *document.Node) string {
	login := p.Text(n)
	if login == "" || p.known.directory == nil {
		return login
	}
	if p.known.directory.Principal(identity.UserID(login)) != nil {
		return login
	}
	if p.known.published != nil {
		p.Add(n, "there is no user %s who can sign in", data.Quote(login))
		return login
	}
	var logins []string
	for _, u := range p.known.directory.Users() {
		if string(u.ID) == login {
			p.Add(n, "the user %s is disabled", login)
			return login
		}
		logins = append(logins, string(u.ID))
	}
	p.Suggest(n, login, logins, "there is no user %s", data.Quote(login))
	return login
}

func (p *parser) status(n *document.Node, least int) int {
	status, ok := p.Int(n)
	if ok && (status < least || status > 599) {
		p.Add(n, "expected a status of HTTP from %d to 599, found %d", least, status)
	}
	return status
}

func (p *parser) action(s *Step, n, key *document.Node) {
	// A job, a webhook or a child is named by its key, or in a mapping with the arguments.
	long := n
	name := func(word string) {
		if key.Kind == document.Mapping {
			p.Known(key, append([]string{word}, arguments[s.Action]...)...)
			key, long = key.Field(word), key
		}
		if s.Name = p.Text(key); s.Name == "" && s.Action != Child {
			p.Advise(cmp.Or(key, long), word+": NAME", "the %s is missing", word)
		}
	}
	switch s.Action {
	case Create:
		p.create(s, key)
	case Send:
		if s.Name = p.Text(key); s.Name != "" {
			p.event(key, p.definition(s))
		}
		s.Data = p.object(n.Field("data"))
	case Advance:
		wait, err := statemachine.ParseDelay(p.Text(key))
		if s.Wait = wait; err != nil && key.Kind == document.String {
			p.Advise(key, "such as P3D, PT30M or 48h", "%s is not a duration", data.Quote(key.Text))
		}
	case Answer:
		name("webhook")
		if d := p.definition(s); d != nil && s.Name != "" && d.WebhookByName[s.Name] == nil {
			p.Suggest(key, s.Name, keysOf(d.WebhookByName), "%s has no webhook %s", d.ID, data.Quote(s.Name))
		}
		s.Status, s.Data = http.StatusOK, valueOf(long.Field("body"))
		if status := long.Field("status"); status != nil {
			s.Status = p.status(status, 0)
		}
	case Complete:
		name("job")
		p.job(s, key)
		s.Data = valueOf(long.Field("output"))
	case Fail:
		name("job")
		p.job(s, key)
		s.Message, s.Final = p.Text(long.Field("message")), p.Bool(long.Field("final"))
	case Child:
		name("workflow")
		p.child(s, key, long)
	case NoAction:
	}
}

func (p *parser) create(s *Step, n *document.Node) {
	p.Known(n, "svcPublic", "svcPrivate", "workflow")
	s.Public, s.Private = p.object(n.Field("svcPublic")), p.object(n.Field("svcPrivate"))
	s.Name = p.workflow(n.Field("workflow"))
}

func (p *parser) object(n *document.Node) data.Value {
	if n == nil {
		return nil
	}
	if n.Kind != document.Mapping {
		p.Add(n, "expected a mapping, found %s", n.Kind)
		return nil
	}
	return valueOf(n)
}

// event refuses a name that nobody could send. An event of the service may be sent in vain: a test may be about just that.
func (p *parser) event(n *document.Node, d *statemachine.Definition) {
	name := statemachine.EventName(n.Text)
	if d == nil || d.Declares(name) || statemachine.IsReserved(name) || d.ServiceEvents[name] {
		return
	}
	p.Suggest(n, n.Text, texts(d.EventNames()), "%s has no event %s", d.ID, data.Quote(n.Text))
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

func (p *parser) job(s *Step, key *document.Node) {
	p.jobType(key, s.Name, p.definition(s))
}

func (p *parser) jobType(n *document.Node, name string, d *statemachine.Definition) {
	if d == nil || name == "" || d.Job(name) != nil {
		return
	}
	var types []string
	for _, t := range d.JobTypes() {
		types = append(types, t.Name)
	}
	p.Suggest(n, name, types, "%s has no job %s", d.ID, data.Quote(name))
}

func (p *parser) child(s *Step, key, long *document.Node) {
	if s.Name != "" {
		p.workflow(key)
	}
	done, failed := long.Field("done"), long.Field("failed")
	if (done == nil) == (failed == nil) {
		p.Advise(long, "done: {…} or failed: true", "the step does not say how the child ends")
	}
	s.Data = valueOf(done)
	s.Failed = failed != nil
	if failed != nil && failed.Kind == document.Bool && !isTrue(failed) {
		p.Advise(failed, "done: {…}", "a child ends done or failed")
	}
}

func keysOf[T any](m map[string]T) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (p *parser) pattern(n *document.Node) {
	if text := p.Text(n); text != "" {
		if _, err := regexp.Compile(text); err != nil {
			p.Add(n, "not a regular expression: %v", err)
		}
	}
}
