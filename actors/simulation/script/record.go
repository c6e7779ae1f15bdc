package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/actors/simulation"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Recorded is the history of a real instance.
type Recorded struct {
	Workflow, Name  string         // Name is that of the test
	Public, Private data.Value     // the documents now
	Entries         []RecordedStep // the oldest first; the first one is the creation
	// WithPrivate keeps all data as it is. Otherwise what may be private is masked: texts by as many x, numbers by 0 and truth values by false.
	WithPrivate bool
}

// RecordedStep is an entry of the history.
type RecordedStep struct {
	User  string
	Event statemachine.EventName
	End   []statemachine.NodeID
	At    time.Time
	Data  data.Value // absent: none, or it was not kept
}

// Record writes a file with a test that goes the way of a real instance, and passes. It fails where the simulated instance goes another way
// than the real one.
func Record(k *Known, of *Recorded) ([]byte, error) {
	d := k.newest[of.Workflow]
	switch {
	case d == nil:
		return nil, fmt.Errorf("the home has no workflow %s", data.Quote(of.Workflow))
	case len(of.Entries) == 0 || of.Entries[0].Event != "":
		return nil, errors.New("the history does not begin with the creation of the instance")
	}
	for i, e := range of.Entries {
		switch e.Event {
		case statemachine.ResetEvent:
			return nil, fmt.Errorf("entry %d is a reset, which no step of a test can do", i+1)
		case statemachine.MigrateEvent:
			return nil, fmt.Errorf("entry %d is a migration, which no step of a test can do", i+1)
		}
	}
	// NB: the history does not keep what the instance was created with: first what its data says, where callers can set it, then nothing.
	var failed error
	for _, isGuessed := range []bool{true, false} {
		r := &recorder{run: run{known: k, workflow: of.Workflow}, of: of, d: d}
		text, err := r.record(isGuessed)
		if err == nil {
			return text, nil
		}
		failed = err
	}
	return nil, failed
}

type recorder struct {
	run
	of    *Recorded
	d     *statemachine.Definition
	steps []*document.Node
	// public are the values of svcPublic; nil: they were not looked for.
	public map[string]bool
}

func (r *recorder) record(isGuessed bool) ([]byte, error) {
	now := r.of.Entries[0].At.UTC().Truncate(time.Second)
	r.world = r.known.World(now, false)
	create := Step{Action: Create, As: r.of.Entries[0].User}
	if isGuessed {
		create.Public = membersOf(r.of.Public, createdKeys(r.d.CreatePublic.Text()))
		if create.Private = membersOf(r.of.Private, createdKeys(r.d.CreatePrivate.Text())); !r.of.WithPrivate {
			create.Private = masked(create.Private)
		}
	}
	if err := r.play(&create, 0); err != nil {
		return nil, err
	}
	for i := range r.of.Entries[1:] {
		if err := r.entry(i + 1); err != nil {
			return nil, err
		}
	}
	r.expect()
	test := mapping("now", textNode(now.Format(time.RFC3339)), "steps", &document.Node{Kind: document.Sequence, Items: r.steps})
	text := document.Write(mapping("workflow", textNode(r.of.Workflow), "tests", mapping(r.of.Name, test)))
	return text, r.passes(text)
}

// passes makes sure that the file is right, and that what it says holds.
func (r *recorder) passes(text []byte) error {
	file, err := Parse("recorded.yaml", text, r.known)
	if err != nil {
		return err
	}
	if failed := Run(file.Tests[0], Options{Known: r.known}).Failure; failed != nil {
		return fmt.Errorf("the recorded test fails in step %d: %s", failed.Step, failed.Summary())
	}
	return nil
}

// entry goes on to the i-th entry of the history.
func (r *recorder) entry(i int) error {
	e, in := &r.of.Entries[i], r.run.of
	if len(in.History()) > i { // it has happened on its own
		return r.compare(i)
	}
	if e.User != statemachine.System {
		if err := r.wait(e.At.Sub(r.world.Now()).Truncate(time.Second), i); err != nil {
			return err
		}
		return r.play(&Step{Action: Send, As: e.User, Name: string(e.Event), Data: r.sentData(e)}, i)
	}
	member := func(key string) data.Value { v, _ := e.Data.Lookup(key); return v }
	for _, hook := range r.d.Webhooks() {
		if hook.OnDone == e.Event || hook.OnError == e.Event {
			status, _ := member("status").Int64()
			return r.answers(&Step{Action: Answer, Name: hook.Name, Status: int(status), Data: r.hidden(member("body"))}, hook.RetryLimit, i)
		}
	}
	node, failed := strings.CutPrefix(string(e.Event), "error.invoke.")
	if !failed {
		node, _ = strings.CutPrefix(node, "done.invoke.")
	}
	for _, j := range in.Jobs() {
		if string(j.At.Node) == node && failed {
			return r.play(&Step{Action: Fail, Name: j.Type, Message: r.hidden(member("message")).Text(), Final: true}, i)
		} else if string(j.At.Node) == node {
			return r.play(&Step{Action: Complete, Name: j.Type, Data: r.hidden(member("output"))}, i)
		}
	}
	if child := onlyChild(in); child != "" && node != string(e.Event) {
		return r.play(&Step{Action: Child, Name: child, Failed: failed, Data: r.hidden(member("output"))}, i)
	}
	if timers := in.Timers(); len(timers) > 0 {
		return r.wait(max(timers[0].Due.Sub(r.world.Now()), e.At.Sub(r.world.Now()).Truncate(time.Second)), i)
	}
	return fmt.Errorf("entry %d: nothing in the simulated instance leads to %s", i+1, data.Quote(string(e.Event)))
}

// answers repeats an answer until the instance is told of it.
func (r *recorder) answers(s *Step, retries, i int) error {
	for try := 0; ; try++ {
		before := len(r.run.of.History())
		if err := r.do(s); err != nil {
			return fmt.Errorf("entry %d: webhook %s: %s", i+1, s.Name, reasonOf(err))
		}
		if len(r.run.of.History()) > before || try >= retries {
			return r.add(s, i)
		}
		r.steps = append(r.steps, stepNode(s))
		open := slices.IndexFunc(r.run.of.Deliveries(), func(d *simulation.Delivery) bool { return d.Webhook() == s.Name })
		if open >= 0 {
			if err := r.wait(r.run.of.Deliveries()[open].Next.Sub(r.world.Now()), -1); err != nil {
				return err
			}
		}
	}
}

// wait lets time pass; i is the entry that should come, or -1.
func (r *recorder) wait(d time.Duration, i int) error {
	if d <= 0 {
		return nil
	}
	s := &Step{Action: Advance, Wait: d}
	before := len(r.run.of.History())
	if err := r.do(s); err != nil {
		return fmt.Errorf("entry %d: %s", i+1, reasonOf(err))
	}
	if len(r.run.of.History()) == before {
		r.steps = append(r.steps, stepNode(s))
		return nil
	}
	return r.add(s, i)
}

// play carries out a step that leads to the i-th entry.
func (r *recorder) play(s *Step, i int) error {
	if err := r.do(s); err != nil {
		err := fmt.Errorf("entry %d: %s of %s is refused with %d: %s", i+1, s.Action, data.Quote(r.of.Entries[i].User), StatusOf(err), reasonOf(err))
		return r.blame(err)
	}
	return r.add(s, i)
}

// add writes a step that was carried out, with where it has led.
func (r *recorder) add(s *Step, i int) error {
	n := stepNode(s)
	in := r.run.of
	states := nodeOf(statesOf(in.Definition(), in.State()))
	n.Fields = append(n.Fields, field("expect", mapping("states", states)))
	r.steps = append(r.steps, n)
	if i < 0 {
		return nil
	}
	return r.compare(i)
}

func (r *recorder) compare(i int) error {
	e, history := &r.of.Entries[i], r.run.of.History()
	if len(history) <= i {
		return r.blame(fmt.Errorf("entry %d: the simulated instance does not take %s", i+1, data.Quote(string(e.Event))))
	}
	if got := &history[i]; got.Event != e.Event || !slices.Equal(got.End, e.End) {
		return r.blame(fmt.Errorf("entry %d: the instance went by %s to %s, but the simulated one by %s to %s",
			i+1, data.Quote(string(e.Event)), nodes(e.End), data.Quote(string(got.Event)), nodes(got.End)))
	}
	return nil
}

// blame says what may be the cause of an error.
func (r *recorder) blame(err error) error {
	if r.of.WithPrivate {
		return err
	}
	return fmt.Errorf("%w; if it depends on private data, which is masked, give --private", err)
}

// expect adds what holds in the end: what is the same in the real instance.
func (r *recorder) expect() {
	state := r.run.of.State()
	public := &document.Node{Kind: document.Mapping}
	for key, v := range r.of.Public.Members() {
		if got, _ := state.Public.Lookup(key); data.Equal(v, got) {
			public.Fields = append(public.Fields, field(key, nodeOf(v)))
		}
	}
	end := mapping("done", nodeOf(truth(r.run.of.IsDone())))
	if len(public.Fields) > 0 && !isMatcher(public) {
		end.Fields = append(end.Fields, field("svcPublic", public))
	}
	r.steps = append(r.steps, mapping("expect", end))
}

// sentData is what a user has sent, with private parts masked unless they are wanted.
func (r *recorder) sentData(e *RecordedStep) data.Value {
	if string(e.Data) == "{}" {
		return nil
	}
	if r.isPrivate(e.Event) && !r.of.WithPrivate {
		return masked(e.Data)
	}
	return r.hidden(e.Data)
}

// hidden masks what may be private: any action can put a part of it into svcPrivate. Values that stand in svcPublic stay, and
// all of an instance whose svcPrivate is known to be empty.
func (r *recorder) hidden(v data.Value) data.Value {
	if r.of.WithPrivate || string(r.of.Private) == "{}" {
		return v
	}
	if r.public == nil {
		r.public = map[string]bool{}
		note(r.public, r.of.Public)
	}
	return mask(v, r.public)
}

// note adds the texts, numbers and truth values of a document.
func note(known map[string]bool, v data.Value) {
	switch v.Kind() {
	case data.Array:
		for _, item := range v.Elements() {
			note(known, item)
		}
	case data.Object:
		for _, member := range v.Members() {
			note(known, member)
		}
	default:
		known[string(v)] = true
	}
}

// isPrivate reports whether the data of an event goes into svcPrivate.
func (r *recorder) isPrivate(event statemachine.EventName) bool {
	const private = "svcPrivate"
	if of := r.d.Events[event]; of != nil && of.Into.Name() == private {
		return true
	}
	for _, n := range r.d.Nodes {
		for _, t := range n.On {
			if t.Into.Name() == private && t.Event.Matches(event) {
				return true
			}
		}
	}
	return false
}

func masked(v data.Value) data.Value { return mask(v, nil) }

// mask replaces what is not known.
func mask(v data.Value, known map[string]bool) data.Value {
	if known[string(v)] {
		return v
	}
	switch v.Kind() {
	case data.String:
		return data.AppendString(nil, strings.Repeat("x", len([]rune(v.Text()))))
	case data.Number:
		return data.Value("0")
	case data.Bool:
		return data.Value("false")
	case data.Array:
		var items []data.Value
		for _, item := range v.Elements() {
			items = append(items, mask(item, known))
		}
		return listOf(items)
	case data.Object:
		var out object
		for key, member := range v.Members() {
			out.put(key, mask(member, known))
		}
		return out.value()
	}
	return v
}

// createdKeys are the properties that a schema of create names.
func createdKeys(schema data.Value) (keys []string) {
	properties, _ := schema.Lookup("properties")
	for key := range properties.Members() {
		keys = append(keys, key)
	}
	return keys
}

func membersOf(v data.Value, keys []string) data.Value {
	var out object
	for key, member := range v.Members() {
		if slices.Contains(keys, key) {
			out.put(key, member)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out.value()
}

// stepNode is a step as a file has it.
func stepNode(s *Step) *document.Node {
	n := &document.Node{Kind: document.Mapping}
	put := func(key string, v data.Value) {
		if v.Kind() != data.Absent {
			n.Fields = append(n.Fields, field(key, nodeOf(v)))
		}
	}
	text := func(key, text string) { n.Fields = append(n.Fields, field(key, textNode(text))) }
	if s.As != "" {
		text("as", s.As)
	}
	switch s.Action {
	case Create:
		with := mapping()
		if len(s.Public) > 0 {
			with.Fields = append(with.Fields, field("svcPublic", nodeOf(s.Public)))
		}
		if len(s.Private) > 0 {
			with.Fields = append(with.Fields, field("svcPrivate", nodeOf(s.Private)))
		}
		n.Fields = append(n.Fields, field("create", with))
	case Advance:
		text("advance", delayText(s.Wait))
	default:
		text(s.Action.String(), s.Name)
	}
	if s.In != "" {
		text("in", s.In)
	}
	switch s.Action {
	case Send:
		put("data", s.Data)
	case Answer:
		put("status", fmt.Appendf(nil, "%d", s.Status))
		put("body", s.Data)
	case Complete:
		put("output", s.Data)
	case Fail:
		if s.Message != "" {
			text("message", s.Message)
		}
		if s.Final {
			put("final", truth(true))
		}
	case Child:
		if s.Failed {
			put("failed", truth(true))
		} else if s.Data.Kind() != data.Absent {
			put("done", s.Data)
		} else {
			put("done", data.Value("null"))
		}
	}
	return n
}

func field(key string, value *document.Node) document.Field {
	return document.Field{Key: textNode(key), Value: value}
}

func textNode(text string) *document.Node { return &document.Node{Kind: document.String, Text: text} }

// mapping makes one of keys and nodes that take turns.
func mapping(pairs ...any) *document.Node {
	n := &document.Node{Kind: document.Mapping}
	for i := 0; i < len(pairs); i += 2 {
		n.Fields = append(n.Fields, field(pairs[i].(string), pairs[i+1].(*document.Node)))
	}
	return n
}

func nodeOf(v data.Value) *document.Node {
	n, err := document.Parse("value.json", v)
	if err != nil {
		panic(err) // it is JSON
	}
	return n
}
