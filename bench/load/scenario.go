package load

import (
	"bytes"
	_ "embed" // for the text below
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Scenario is what the instances of a run live through: how they are created, and a weighted walk from node to node. It
// is read only once a run uses it, except for WorkflowID, which may be set before.
type Scenario struct {
	WorkflowID string
	// Definition is the text of the workflow, and DefinitionFile its path. Both are
	// empty when the scenario names none; BuiltIn has its own.
	Definition, DefinitionFile string
	// Refs are the files that the definition refers to, by their names in it.
	Refs map[string][]byte
	// Users are those who work at the instances. The first creates and reads them, and sends what is nobody else's.
	Users []User

	roles   []string // of the definition
	create  text
	creator int // in Users
	query   string
	places  map[string]*place
	work    *work // nil: it takes no jobs
}

// User is somebody who sends requests.
type User struct {
	Name              string
	Roles, Privileges []string
}

// HasUser reports whether somebody of that name works at the instances.
func (s *Scenario) HasUser(name string) bool {
	return slices.ContainsFunc(s.Users, func(u User) bool { return u.Name == name })
}

// place is a node with the steps that lead on from it. One without steps ends a walk.
type place struct {
	node  string
	shown []byte // the node as an answer has it
	steps []step
	sum   float64 // of the weights
}

type step struct {
	event  string
	data   text // empty: none
	user   int  // in Scenario.Users
	weight float64
	to     *place // where it must lead; nil: wherever the answer says
}

func (s *Scenario) place(node string) *place {
	if s.places[node] == nil {
		s.places[node] = &place{node: node, shown: []byte(`"nodeId":"` + node + `"`)}
	}
	return s.places[node]
}

func (p *place) add(s step) {
	p.steps = append(p.steps, s)
	p.sum += s.weight
}

func (p *place) pick(random *rand.Rand) *step {
	if len(p.steps) > 1 {
		at := random.Float64() * p.sum
		for i := range p.steps {
			if at -= p.steps[i].weight; at < 0 {
				return &p.steps[i]
			}
		}
	}
	return &p.steps[len(p.steps)-1]
}

// Round reports whether a walk never ends, and where it stands is known without the
// answers: every step says where it leads, and every node has a step.
func (s *Scenario) Round() bool {
	for _, p := range s.places {
		if len(p.steps) == 0 {
			return false
		}
		for i := range p.steps {
			if p.steps[i].to == nil {
				return false
			}
		}
	}
	return true
}

// Batches reports whether events can be sent in batches: a walk never ends and all steps are one user's.
func (s *Scenario) Batches() bool {
	users := map[int]bool{}
	for _, p := range s.places {
		for i := range p.steps {
			users[p.steps[i].user] = true
		}
	}
	return s.Round() && len(users) < 2
}

var (
	statesHead = []byte(`"states":[`)
	nodeHead   = []byte(`"nodeId":"`)
)

// whereIn returns the place of the first node in an answer that has steps; nil when
// there is none: the walk is over there.
func (s *Scenario) whereIn(body []byte) *place {
	at := bytes.LastIndex(body, statesHead) // data could have such a member too, and stands before
	if at < 0 {
		return nil
	}
	states := body[at:]
	for {
		_, rest, found := bytes.Cut(states, nodeHead)
		node, rest, closed := bytes.Cut(rest, []byte{'"'})
		if !found || !closed {
			return nil
		}
		if p := s.places[string(node)]; p != nil && len(p.steps) > 0 {
			return p
		}
		states = rest
	}
}

func nodesIn(body []byte) string {
	var names []string
	for _, part := range bytes.Split(body[max(0, bytes.LastIndex(body, statesHead)):], nodeHead)[1:] {
		node, _, _ := bytes.Cut(part, []byte{'"'})
		names = append(names, string(node))
	}
	return strings.Join(names, ", ")
}

// queryLimit is how many instances a query asks for when nobody says otherwise.
const queryLimit = 20

func query(filter string, limit int) string {
	values := url.Values{"limit": {strconv.Itoa(limit)}}
	if filter != "" {
		values.Set("filter", filter)
	}
	return values.Encode()
}

type script struct {
	scenario *Scenario
	users    []userScript
	content  content
	out      []byte // the last request; reused
	body     []byte // likewise
}

// userScript is what is the same in all requests of a user.
type userScript struct {
	create, event, batch string // request line and headers up to the length of the body
	activate, complete   string // likewise
	read, readEnd, query string
}

func newScript(o *Options, c content) *script {
	s := &script{scenario: o.Scenario, content: c}
	for _, u := range o.Scenario.Users {
		token, ok := o.Tokens[u.Name]
		if !ok {
			token = o.Token
		}
		s.users = append(s.users, newUserScript(o, token))
	}
	return s
}

func newUserScript(o *Options, token string) userScript {
	headers := " HTTP/1.1\r\nHost: " + o.Host + "\r\n"
	if token != "" {
		headers += "Authorization: svc.token " + token + "\r\n"
	}
	if o.Minimal {
		headers += "Prefer: return=minimal\r\n"
	}
	const json = "Content-Type: application/json\r\nContent-Length: "
	root, id := o.BasePath+"/workflow/api/v1/", o.Scenario.WorkflowID
	return userScript{
		create:   "POST " + root + "create" + headers + json,
		event:    "POST " + root + "event" + headers + json,
		batch:    "POST " + root + "events" + headers + json,
		activate: "POST " + root + "jobs/activate" + headers + json,
		complete: "POST " + root + "jobs/complete" + headers + json,
		read:     "GET " + root + "instance/" + id + "/",
		readEnd:  headers + "\r\n",
		query:    "GET " + root + "instances/" + id + "?" + o.Scenario.query + headers + "\r\n",
	}
}

// create returns a request for a new instance. Like all results of a script it is good until the next one.
func (s *script) create() []byte {
	s.body = append(s.body[:0], `{"workflowId":"`...)
	s.body = append(s.body, s.scenario.WorkflowID...)
	s.body = append(s.body, '"')
	if len(s.scenario.create) > 0 {
		s.body = append(s.body, `,"data":`...)
		s.body = s.scenario.create.append(s.body, &s.content)
	}
	s.body = append(s.body, '}')
	return s.post(s.users[s.scenario.creator].create)
}

func (s *script) event(instance string, t *step) []byte {
	s.body = s.appendEvent(s.body[:0], instance, t)
	return s.post(s.users[t.user].event)
}

func (s *script) appendEvent(dst []byte, instance string, t *step) []byte {
	dst = append(dst, `{"workflowId":"`...)
	dst = append(dst, s.scenario.WorkflowID...)
	dst = append(dst, `","instanceId":"`...)
	dst = append(dst, instance...)
	dst = append(dst, `","event":{"name":"`...)
	dst = append(dst, t.event...)
	dst = append(dst, '"')
	if len(t.data) > 0 {
		dst = append(dst, `,"data":`...)
		dst = t.data.append(dst, &s.content)
	}
	return append(dst, `}}`...)
}

// beginBatch, then addToBatch for each event, and then endBatch, which returns the request of a user.
func (s *script) beginBatch() { s.body = append(s.body[:0], '[') }

func (s *script) addToBatch(instance string, t *step) {
	if len(s.body) > 1 {
		s.body = append(s.body, ',')
	}
	s.body = s.appendEvent(s.body, instance, t)
}

func (s *script) endBatch(user int) []byte {
	s.body = append(s.body, ']')
	return s.post(s.users[user].batch)
}

func (s *script) post(head string) []byte {
	s.out = append(s.out[:0], head...)
	s.out = strconv.AppendInt(s.out, int64(len(s.body)), 10)
	s.out = append(s.out, "\r\n\r\n"...)
	s.out = append(s.out, s.body...)
	return s.out
}

func (s *script) read(instance string) []byte {
	u := &s.users[s.scenario.creator]
	s.out = append(s.out[:0], u.read...)
	s.out = append(s.out, instance...)
	s.out = append(s.out, u.readEnd...)
	return s.out
}

func (s *script) query() []byte {
	s.out = append(s.out[:0], s.users[s.scenario.creator].query...)
	return s.out
}

// UserID is the user of BuiltIn whose token a run needs.
const UserID = "bench"

// WorkflowID is the workflow of Definition.
const WorkflowID = "leave-request"

// Definition is the text of the workflow that a run sends events to. The server must have it.
//
//go:embed leave-request.yaml
var Definition string

//go:embed built-in.yaml
var builtIn []byte

// The scenario of Jobs with its definition.
var (
	//go:embed job-request.yaml
	jobDefinition []byte
	//go:embed jobs.yaml
	builtInJobs []byte
)

// BuiltIn returns the scenario of Definition: an instance goes round between two nodes, and the data is always the same.
func BuiltIn() *Scenario {
	return ownScenario("built-in.yaml", builtIn, []byte(Definition))
}

// Jobs returns the scenario in which the instances of BuiltIn go the same way by jobs, not by events.
func Jobs() *Scenario { return ownScenario("jobs.yaml", builtInJobs, jobDefinition) }

func ownScenario(file string, text, definition []byte) *Scenario {
	s, err := ParseScenario(file, text, func(string) ([]byte, error) { return definition, nil })
	if err != nil {
		panic(err) // it is a part of this program
	}
	s.DefinitionFile = ""
	return s
}
