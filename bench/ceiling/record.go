package ceiling

import (
	"sync"
	"time"
)

// The shapes of the interface (interfaces: group B), as structs for
// encoding/json.
type (
	record struct {
		ID         string         `json:"_id"`
		WorkflowID string         `json:"workflowId"`
		Public     map[string]any `json:"svcPublic"`
		Private    map[string]any `json:"svcPrivate"`
		History    []entry        `json:"svcHistory,omitempty"`
		States     []position     `json:"states"`
	}
	entry struct {
		User  string    `json:"user"`
		Start []string  `json:"startState"`
		Event string    `json:"transitionEvent"`
		End   []string  `json:"endState"`
		At    time.Time `json:"ts"`
	}
	position struct {
		Machine string `json:"stateMachineId"`
		Node    string `json:"nodeId"`
	}
	createRequest struct {
		WorkflowID string `json:"workflowId"`
		Data       struct {
			Public  map[string]any `json:"svcPublic"`
			Private map[string]any `json:"svcPrivate"`
		} `json:"data"`
	}
	eventRequest struct {
		WorkflowID string `json:"workflowId"`
		InstanceID string `json:"instanceId"`
		Event      struct {
			Name string         `json:"name"`
			Data map[string]any `json:"data"`
		} `json:"event"`
	}
	instanceReply struct {
		WorkflowID string  `json:"workflowId"`
		InstanceID string  `json:"instanceId"`
		State      *record `json:"state"`
	}
	recordReply struct {
		State *record `json:"state"`
	}
)

// instance is a record and the lock that it is used under. The lock is held
// until a change is durable, so that the store has the changes in their order.
type instance struct {
	mu     sync.Mutex
	record record
}

// nodes says where an event leads. What is not there leads nowhere.
var nodes = map[string]string{"submit": "review", "return": "draft", "approve": "approved"}

// newInstance takes the maps of the request over.
func newInstance(id string, request *createRequest) *instance {
	if request.Data.Private == nil {
		request.Data.Private = map[string]any{}
	}
	i := &instance{record: record{
		ID: id, WorkflowID: request.WorkflowID,
		Public: request.Data.Public, Private: request.Data.Private,
		States: []position{{"main", "draft"}},
	}}
	i.record.History = []entry{{User: user, Start: []string{"Start"}, End: []string{"draft"}, At: time.Now().UTC()}}
	return i
}

// user is who all requests are from.
const user = "bench"

// apply brings an event into the record. The caller holds the lock.
func (i *instance) apply(request *eventRequest) {
	r := &i.record
	for key, value := range request.Event.Data {
		r.Public[key] = value
	}
	before := r.States[0].Node
	if node, known := nodes[request.Event.Name]; known {
		r.States[0].Node = node
	}
	r.History = []entry{{
		User: user, Start: []string{before}, Event: request.Event.Name,
		End: []string{r.States[0].Node}, At: time.Now().UTC(),
	}}
}
