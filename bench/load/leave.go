package load

import _ "embed" // for the text below

// UserID is the user of BuiltIn whose token a run needs.
const UserID = "bench"

// WorkflowID is the workflow of Definition.
const WorkflowID = "leave-request"

// Definition is the text of the workflow that a run sends events to. The server must have it.
//
//go:embed leave-request.yaml
var Definition string

const createPublic = `{"requester":"bench","days":3,"from":"2026-12-01","reason":"a few days in the mountains"}`

type move struct {
	event, data, node string
}

// firstNode is where an instance begins.
const firstNode = "draft"

// moves go round: an instance starts before the first.
var moves = [...]move{
	{"submit", `{"days":3,"status":"waiting","comment":"my calendar is free, and so is the hut"}`, "review"},
	{"return", `{"status":"returned","comment":"please say who stands in for you"}`, firstNode},
}

// Turn returns the event that an instance gets after n events, with its data as JSON, and the node that it leads to.
func Turn(n int) (event, data, node string) {
	m := &moves[n%len(moves)]
	return m.event, m.data, m.node
}

// CreateData returns the two documents of a new instance as JSON; private is empty when there is none.
func CreateData() (public, private string) { return createPublic, "" }

// BuiltIn returns the scenario of Definition: an instance goes round between two
// nodes, and the data is always the same.
func BuiltIn() *Scenario {
	s := &Scenario{
		WorkflowID: WorkflowID,
		Definition: Definition,
		Users:      []User{{Name: UserID, Roles: []string{"employee"}}},
		create:     text{{literal: `{"svcPublic":` + createPublic + `}`}},
		places:     map[string]*place{},
		query:      query(`{"states.nodeId":"`+moves[0].node+`"}`, queryLimit),
	}
	at := s.place(firstNode)
	for _, m := range moves {
		next := s.place(m.node)
		at.add(step{event: m.event, data: text{{literal: m.data}}, weight: 1, to: next})
		at = next
	}
	return s
}
