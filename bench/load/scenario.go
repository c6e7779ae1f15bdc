package load

import (
	"bytes"
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

// place returns the place of a node, which it makes when it is not there.
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

// nodesIn returns the nodes in an answer with commas between them, for messages.
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

// query is what stands behind the question mark of a list.
func query(filter string, limit int) string {
	values := url.Values{"limit": {strconv.Itoa(limit)}}
	if filter != "" {
		values.Set("filter", filter)
	}
	return values.Encode()
}
